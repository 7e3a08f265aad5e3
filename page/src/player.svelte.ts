// Plays melodies with Web Audio: a soft triangle tone per note, and tells which event sounds.
import { notes } from "./logic/sound";
import type { Sequence } from "./logic/types";

class Player {
  /** The line that plays, and its event. */
  line = $state<string | null>(null);
  event = $state(-1);
  private context: AudioContext | null = null;
  private loud: GainNode | null = null;
  private frame = 0;

  toggle(line: string, sequence: Sequence, from?: number, to?: number): void {
    if (this.line === line) this.stop();
    else this.play(line, sequence, from, to);
  }

  play(line: string, sequence: Sequence, from?: number, to?: number): void {
    this.stop();
    const played = notes(sequence, from, to);
    const context = (this.context ??= new AudioContext());
    void context.resume();
    const loud = (this.loud = context.createGain());
    loud.gain.value = 0.25;
    loud.connect(context.destination);
    const begin = context.currentTime + 0.06;
    for (const note of played) {
      const tone = context.createOscillator();
      const envelope = context.createGain();
      const at = begin + note.at;
      tone.type = "triangle";
      tone.frequency.value = note.hertz;
      envelope.gain.setValueAtTime(0, at);
      envelope.gain.linearRampToValueAtTime(1, at + 0.015);
      envelope.gain.exponentialRampToValueAtTime(0.08, at + note.seconds);
      envelope.gain.linearRampToValueAtTime(0, at + note.seconds + 0.04);
      tone.connect(envelope).connect(loud);
      tone.start(at);
      tone.stop(at + note.seconds + 0.05);
    }
    this.line = line;
    let next = 0;
    const follow = () => {
      const now = context.currentTime - begin;
      while (next < played.length && played[next].at <= now) this.event = played[next++].event;
      const last = played[played.length - 1];
      if (!last || now > last.at + last.seconds) return this.stop();
      this.frame = requestAnimationFrame(follow);
    };
    this.frame = requestAnimationFrame(follow);
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.loud?.disconnect();
    this.loud = null;
    this.line = null;
    this.event = -1;
  }
}

export const player = new Player();
