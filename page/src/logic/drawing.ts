// Canvas 2D drawing of one time line. Drawn only when something changed, never in a loop.
import type { Marks, Shape } from "./marks";
import { visible } from "./thin";
import type { Bounds, Sequence } from "./types";

/** Colours of the page's theme, read once per theme. */
export interface Ink {
  marks: string[];
  line: string;
  soft: string;
  ink: string;
  accent: string;
  accentSoft: string;
  sunken: string;
  surface: string;
  good: string;
  against: string;
}

export function readInk(): Ink {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(name).trim();
  return {
    marks: Array.from({ length: 9 }, (_, slot) => of(`--mark-${slot}`)),
    line: of("--line"), soft: of("--soft"), ink: of("--ink"), accent: of("--accent"),
    accentSoft: of("--accent-soft"), sunken: of("--sunken"), surface: of("--surface"), good: of("--for"),
    against: of("--against"),
  };
}

export interface Line {
  sequence: Sequence;
  marks: Marks;
  ink: Ink;
  /** Shown part of the axis, and the time of the sequence that is 0 on it. */
  view: Bounds;
  zero: number;
  width: number;
  height: number;
  /** The part that was found, positions of events. */
  window: Bounds | null;
  /** The part that is selected, positions of events (to: exclusive). */
  brush: Bounds | null;
  /** The event under the pointer or the keyboard, -1 for none. */
  cursor: number;
  /** What each event gives to the score, or its match with the event under the pointer; null for none. */
  light: Float64Array | null;
  /** The event that sounds, -1 for none. */
  playing: number;
  faint: boolean;
}

const EDGE = 6; // room above and below the lanes

/** Height of an event: its value (a pitch, an amount) if the sequence has one, else the lane of its mark. */
export function heights(sequence: Sequence, marks: Marks, height: number): (event: number) => number {
  const room = height - 2 * EDGE;
  const values = Object.values(sequence.values).find((column) => column.length === sequence.times.length);
  if (values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    return (event) => height - EDGE - (high > low ? (values[event] - low) / (high - low) : 0.5) * room;
  }
  const lanes = Math.max(marks.lanes - 1, 1);
  return (event) => height - EDGE - (Math.min(marks.slot(sequence.marks[event]), lanes) / lanes) * room;
}

/** Draw a time line; returns how many events were drawn. */
export function drawLine(context: CanvasRenderingContext2D, line: Line): number {
  const { sequence, ink, view, zero, width, height, marks } = line;
  const scale = width / (view[1] - view[0]);
  const x = (time: number) => (time - zero - view[0]) * scale;
  const y = heights(sequence, marks, height);
  context.clearRect(0, 0, width, height);
  band(context, line, x);
  const slots = (event: number) => marks.slot(sequence.marks[event]);
  const shown = visible(sequence.times, slots, [view[0] + zero, view[1] + zero], width, 9);
  const crowded = shown.length > width / 3;
  const size = crowded ? 2.2 : Math.max(2.6, Math.min(4.6, height / 12, (0.9 * width) / Math.max(shown.length, 1)));
  if (Object.keys(sequence.values).length && !crowded) path(context, line, shown, x, y);
  const strongest = line.light ? line.light.reduce((most, part) => Math.max(most, Math.abs(part)), 1e-12) : 0;
  if (shown.length > width && !line.light && !line.window) strokes(context, line, shown, slots, x, y);
  else for (const event of shown) {
    const slot = slots(event);
    const inside = !line.window || (event >= line.window[0] && event < line.window[1]);
    const lit = line.light ? Math.abs(line.light[event] ?? 0) / strongest : 1;
    context.globalAlpha = line.faint ? 0.25 : !inside ? 0.22 : line.light ? 0.16 + 0.84 * lit : 1;
    context.fillStyle = context.strokeStyle = ink.marks[slot];
    shape(context, marks.look(sequence.marks[event]).shape, x(sequence.times[event]), y(event),
      line.light ? size * (0.8 + 0.8 * lit) : size);
    if (line.light && lit > 0.5 && (line.light[event] ?? 0) < 0) minus(context, ink.against, x(sequence.times[event]), y(event), size);
  }
  context.globalAlpha = 1;
  for (const event of [line.cursor, line.playing]) {
    if (event >= 0 && event < sequence.times.length) ring(context, ink.ink, x(sequence.times[event]), y(event), size + 4);
  }
  return shown.length;
}

/** Many events: short strokes, one path per colour. Shapes could not be told apart here anyway. */
function strokes(
  context: CanvasRenderingContext2D, line: Line, shown: number[], slots: (event: number) => number,
  x: (time: number) => number, y: (event: number) => number,
): void {
  const paths = line.ink.marks.map(() => new Path2D());
  for (const event of shown) paths[slots(event)].rect(x(line.sequence.times[event]) - 0.6, y(event) - 2.5, 1.2, 5);
  context.globalAlpha = line.faint ? 0.25 : 0.85;
  paths.forEach((path, slot) => {
    context.fillStyle = line.ink.marks[slot];
    context.fill(path);
  });
}

function band(context: CanvasRenderingContext2D, line: Line, x: (time: number) => number): void {
  const { sequence, ink, height, width } = line;
  const { times } = sequence;
  if (!times.length) return;
  const from = x(sequence.start ?? times[0]);
  const to = x(sequence.end ?? times[times.length - 1]);
  context.globalAlpha = line.faint ? 0.4 : 1;
  context.fillStyle = ink.line;
  context.fillRect(Math.max(from, 0), height - 1, Math.max(Math.min(to, width) - Math.max(from, 0), 1), 1);
  for (const edge of [from, to]) if (edge >= 0 && edge <= width) context.fillRect(Math.min(edge, width - 1), height - 5, 1, 5);
  const zero = x(line.zero);
  if (zero >= 0 && zero <= width) {
    context.fillStyle = ink.line;
    context.fillRect(zero, 0, 1, height);
  }
  const block = (range: Bounds, fill: string, edge: string) => {
    const last = Math.min(range[1], times.length) - 1;
    const [left, right] = [x(times[range[0]]) - 5, x(times[last]) + 5];
    context.fillStyle = fill;
    context.fillRect(left, 0, right - left, height);
    context.strokeStyle = edge;
    context.lineWidth = 1;
    context.strokeRect(Math.round(left) + 0.5, 0.5, Math.round(right - left), height - 1);
  };
  if (line.window) block(line.window, ink.sunken, ink.line);
  if (line.brush && line.brush[1] > line.brush[0]) block(line.brush, ink.accentSoft, ink.accent);
  context.globalAlpha = 1;
}

/** A thin line through the values, so that a melody or an amount reads as a curve. */
function path(
  context: CanvasRenderingContext2D, line: Line, shown: number[], x: (time: number) => number, y: (event: number) => number,
): void {
  context.strokeStyle = line.ink.line;
  context.lineWidth = 1.2;
  context.beginPath();
  for (const event of shown) {
    const [left, top] = [x(line.sequence.times[event]), y(event)];
    if (event === shown[0]) context.moveTo(left, top);
    else context.lineTo(left, top);
  }
  context.stroke();
}

export function shape(context: CanvasRenderingContext2D, kind: Shape, x: number, y: number, r: number): void {
  context.beginPath();
  context.lineWidth = Math.max(1.4, r / 2.4);
  if (kind === "circle") context.arc(x, y, r, 0, 7);
  else if (kind === "dot") context.arc(x, y, 0.62 * r, 0, 7);
  else if (kind === "square") context.rect(x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
  else if (kind === "bar") context.rect(x - 0.4 * r, y - 1.25 * r, 0.8 * r, 2.5 * r);
  else if (kind === "ring") context.arc(x, y, 0.8 * r, 0, 7);
  else if (kind === "cross") {
    for (const sign of [-1, 1]) {
      context.moveTo(x - r * 0.85, y - sign * r * 0.85);
      context.lineTo(x + r * 0.85, y + sign * r * 0.85);
    }
  } else {
    const corners: Record<string, [number, number][]> = {
      triangle: [[0, -1.2], [1.15, 0.85], [-1.15, 0.85]],
      down: [[0, 1.2], [1.15, -0.85], [-1.15, -0.85]],
      diamond: [[0, -1.3], [1.2, 0], [0, 1.3], [-1.2, 0]],
    };
    corners[kind].forEach(([dx, dy], i) => (i ? context.lineTo(x + dx * r, y + dy * r) : context.moveTo(x + dx * r, y + dy * r)));
    context.closePath();
  }
  if (kind === "ring" || kind === "cross") context.stroke();
  else context.fill();
}

function ring(context: CanvasRenderingContext2D, colour: string, x: number, y: number, r: number): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(x, y, r, 0, 7);
  context.stroke();
}

function minus(context: CanvasRenderingContext2D, colour: string, x: number, y: number, r: number): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(x - r, y + r + 3);
  context.lineTo(x + r, y + r + 3);
  context.stroke();
}
