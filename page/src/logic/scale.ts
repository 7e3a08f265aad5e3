// The time axis: ticks, zoom and pan, and times in words.
import type { Bounds } from "./types";

/** Zoom by a factor (below 1: closer) around a fixed time. */
export function zoomed([from, to]: Bounds, factor: number, at: number): Bounds {
  const span = Math.max((to - from) * factor, 1e-9 * Math.max(1, Math.abs(at)));
  const share = (at - from) / (to - from);
  return [at - share * span, at + (1 - share) * span];
}

/** Pan by a share of what is shown. */
export function panned([from, to]: Bounds, share: number): Bounds {
  const step = (to - from) * share;
  return [from + step, to + step];
}

/** Keep a view within reach of the data, so that nobody gets lost in empty time. */
export function kept([from, to]: Bounds, [low, high]: Bounds): Bounds {
  const whole = Math.max(high - low, 1e-9);
  const span = Math.min(to - from, 8 * whole);
  const middle = Math.min(Math.max((from + to) / 2, low), high);
  return [middle - span / 2, middle + span / 2];
}

/** Round ticks, at most `most` of them. */
export function ticks([from, to]: Bounds, most: number): number[] {
  const rough = (to - from) / Math.max(most, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const found: number[] = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9 * step; k++) found.push(k * step + 0);
  return found;
}

/** A number with as many digits as a difference of `step` needs, and no more. */
export function number(value: number, step = Math.abs(value) / 100): string {
  if (!Number.isFinite(value)) return "?";
  const size = Math.abs(value);
  if (size >= 1e7 || (size > 0 && size < 1e-4 && step < 1e-4)) return value.toExponential(2).replace("e+", "e");
  const digits = step > 0 ? Math.min(Math.max(-Math.floor(Math.log10(step)), 0), 6) : 0;
  const text = value.toLocaleString("en", { maximumFractionDigits: digits });
  return text === "-0" ? "0" : text.replace("-", "−");
}

const SECONDS: Record<string, number> = {
  ms: 0.001, millisecond: 0.001, milliseconds: 0.001, second: 1, seconds: 1, s: 1, sec: 1, minute: 60, minutes: 60, min: 60, hour: 3600, hours: 3600, h: 3600,
  day: 86400, days: 86400, d: 86400, week: 604800, weeks: 604800,
};

/** Whether a time counts from 1970, by the rule of the library. */
export function isDate(value: number, unit: string | null): boolean {
  const factor = unit ? SECONDS[unit.toLowerCase()] : undefined;
  return factor !== undefined && factor <= 1 && value * factor >= 1e8 && value * factor <= 1e10;
}

/** A point in time: a date (UTC), as exact as a difference of `step` needs, if it counts from 1970, else the number. */
export function moment(value: number, unit: string | null, step?: number): string {
  if (!isDate(value, unit)) return number(value, step);
  const factor = SECONDS[(unit as string).toLowerCase()];
  const text = new Date(1000 * factor * value).toISOString().replace("T", " ");
  const seconds = factor * (step ?? 1);
  return text.slice(0, seconds >= 86400 ? 10 : seconds >= 60 ? 16 : seconds >= 1 ? 19 : 23);
}

/** A duration in words: "2.5 hours" where the unit is known, the number with its unit otherwise. */
export function duration(value: number, unit: string | null): string {
  const factor = unit ? SECONDS[unit.toLowerCase()] : undefined;
  if (factor === undefined) return unit ? `${number(value)} ${unit}` : number(value);
  const seconds = value * factor;
  for (const [name, size] of [["days", 86400], ["hours", 3600], ["minutes", 60]] as const) {
    if (Math.abs(seconds) >= 2 * size) return `${number(seconds / size)} ${name}`;
  }
  return Math.abs(seconds) < 1 && seconds !== 0 ? `${number(seconds * 1000)} ms` : `${number(seconds)} s`;
}
