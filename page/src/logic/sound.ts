// Melodies as sound: a column `pitch` with one MIDI number per event makes a sequence playable.
import type { Sequence } from "./types";

export interface Note {
  /** Seconds from the beginning. */
  at: number;
  seconds: number;
  hertz: number;
  event: number;
}

const NOTE_SECONDS = 0.24; // of the usual gap of a melody
const LONGEST = 25; // seconds that are played

export function playable(sequence: Sequence | null): boolean {
  return !!sequence && sequence.values.pitch?.length === sequence.times.length && sequence.times.length > 1;
}

/** The notes of a melody, or of its events from `from` to `to`: the median gap lasts a quarter of a second. */
export function notes(sequence: Sequence, from = 0, to = sequence.times.length): Note[] {
  const pitch = sequence.values.pitch ?? [];
  const times = sequence.times.slice(from, to);
  const gaps = times.slice(1).map((time, i) => time - times[i]).filter((gap) => gap > 0).sort((a, b) => a - b);
  const unit = NOTE_SECONDS / (gaps[gaps.length >> 1] || 1);
  return times
    .map((time, i) => ({
      at: (time - times[0]) * unit,
      seconds: Math.min(Math.max(((times[i + 1] ?? time + 2 / unit) - time) * unit, 0.08), 1.5),
      hertz: 440 * 2 ** ((pitch[from + i] - 69) / 12),
      event: from + i,
    }))
    .filter((note) => note.at < LONGEST && Number.isFinite(note.hertz));
}
