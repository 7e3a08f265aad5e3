// Which events of a long sequence to draw: at most one per pixel column and lane. 10,000 events stay smooth.
import type { Bounds } from "./types";

/** First position whose time is at least `time` (binary search). */
export function lowerBound(times: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Positions of the events to draw, in order: those in view, the first of each (pixel column, lane). */
export function visible(
  times: ArrayLike<number>, laneOf: (event: number) => number, [from, to]: Bounds, width: number, lanes: number,
): number[] {
  const begin = lowerBound(times, from);
  const end = lowerBound(times, to + (to - from) * 1e-9);
  const found: number[] = [];
  if (end - begin <= width) {
    for (let event = begin; event < end; event++) found.push(event);
    return found;
  }
  const taken = new Uint8Array((Math.ceil(width) + 1) * (lanes + 1));
  const scale = width / (to - from);
  for (let event = begin; event < end; event++) {
    const cell = Math.floor((times[event] - from) * scale) * (lanes + 1) + laneOf(event);
    if (taken[cell]) continue;
    taken[cell] = 1;
    found.push(event);
  }
  return found;
}

/** The event nearest to a time, or -1. */
export function nearest(times: ArrayLike<number>, time: number): number {
  if (!times.length) return -1;
  const right = lowerBound(times, time);
  if (right === 0) return 0;
  if (right === times.length) return times.length - 1;
  return time - times[right - 1] <= times[right] - time ? right - 1 : right;
}
