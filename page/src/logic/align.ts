// Align, rank, filter and group hits, as in LifeLines2: everything that puts rows into an order or on one axis.
import type { Bounds, Hit, Metadata, Sequence, Value } from "./types";

/** What is put at time 0: the start, the end, an event of one kind (its first), or nothing. */
export type Align = "start" | "end" | "clock" | `mark:${string}`;

/** The time that becomes 0, or null if the sequence has no such event. */
export function anchor(sequence: Sequence, align: Align, markOf: (name: string) => number): number | null {
  const { times } = sequence;
  if (align === "clock") return 0;
  if (align === "end") return sequence.end ?? times[times.length - 1] ?? 0;
  if (align.startsWith("mark:")) {
    const place = sequence.marks.indexOf(markOf(align.slice(5)));
    return place < 0 ? null : times[place];
  }
  return sequence.start ?? times[0] ?? 0;
}

/** First and last moment of a sequence, its observation window included. */
export function extent(sequence: Sequence): Bounds {
  const { times } = sequence;
  const first = times[0] ?? 0;
  const last = times[times.length - 1] ?? 0;
  return [Math.min(sequence.start ?? first, first), Math.max(sequence.end ?? last, last)];
}

/** The part of the axis that shows the query whole and the hits as far as they are not much longer. */
export function fit(query: Sequence | null, hits: Sequence[], align: Align, markOf: (name: string) => number): Bounds {
  const ranges = [query, ...hits].filter((one): one is Sequence => one !== null).map((one) => {
    const [from, to] = extent(one);
    const zero = anchor(one, align, markOf) ?? from;
    return [from - zero, to - zero];
  });
  if (!ranges.length) return [0, 1];
  const sorted = (side: 0 | 1) => ranges.map((range) => range[side]).sort((a, b) => a - b);
  // Nine of ten rows are whole: one very long hit must not squeeze all others into a corner. By the clock all are: a
  // row that lies elsewhere would be empty.
  const out = align === "clock" ? 0 : 0.1;
  const low = sorted(0)[Math.floor(out * (ranges.length - 1))];
  const high = sorted(1)[Math.ceil((1 - out) * (ranges.length - 1))];
  const from = Math.min(low, query ? ranges[0][0] : low);
  const to = Math.max(high, query ? ranges[0][1] : high);
  const room = 0.02 * (to - from || 1);
  return [from - room, to + room];
}

/** The value of a column: the group, a metadata column, or a figure of the events. */
export function valueOf(hit: Hit, column: string): Value {
  if (column === "score") return hit.score;
  if (column === "group") return hit.group;
  if (column === "id") return hit.id;
  if (column === "events") return hit.sequence?.times.length ?? null;
  if (column === "duration") {
    if (!hit.sequence) return null;
    const [from, to] = extent(hit.sequence);
    return to - from;
  }
  return hit.metadata[column] ?? null;
}

/** A copy of the hits in a new order: scores, events and durations from the largest, texts from A to Z, nulls last. */
export function rank(hits: Hit[], column: string): Hit[] {
  if (column === "score") return [...hits].sort((a, b) => a.rank - b.rank);
  return [...hits].sort((a, b) => compare(valueOf(a, column), valueOf(b, column)) || a.rank - b.rank);
}

function compare(a: Value, b: Value): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return b - a;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

export interface Group {
  name: string;
  hits: Hit[];
}

/** Hits by the value of a column, largest group first; one group without a name if nothing is chosen. */
export function grouped(hits: Hit[], column: string | null): Group[] {
  if (!column) return [{ name: "", hits }];
  const groups = new Map<string, Hit[]>();
  for (const hit of hits) {
    const value = valueOf(hit, column);
    const name = value === null ? "none" : String(value);
    groups.set(name, [...(groups.get(name) ?? []), hit]);
  }
  return [...groups].map(([name, members]) => ({ name, hits: members })).sort((a, b) => b.hits.length - a.hits.length);
}

/** Columns that differ between hits and have few enough values to be useful in a menu. */
export function columnsOf(hits: Hit[]): string[] {
  const names = new Set<string>();
  for (const hit of hits) for (const name of Object.keys(hit.metadata)) names.add(name);
  return [...names].filter((name) => hits.some((hit) => hit.metadata[name] !== null));
}

/** What is worth a place beside the title: the group and metadata, without what has been said already. */
export function factsOf(one: { id: string; group: string | null; metadata: Metadata }): [string, Value][] {
  const all: [string, Value][] = [["group", one.group], ...Object.entries(one.metadata).filter(([name]) => !isTitle(name))];
  const letters = (value: Value) => String(value ?? "").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const title = letters(titleOf(one));
  const said = new Set([title]);
  return all.filter(([name, value]) => {
    const text = letters(value);
    const inTitle = name !== "group" && text.length > 3 && title.includes(text);
    return text !== "" && !inTitle && !said.has(text) && said.add(text);
  });
}

/** The columns whose texts name a sequence best, in this order. */
const TITLES = ["title", "name", "label"];

export function titleOf(one: { id: string; metadata: Metadata }): string {
  for (const name of TITLES) {
    const value = one.metadata[name];
    if (typeof value === "string" && value.trim()) return value;
  }
  return shortId(one.id);
}

const LONGEST_ID = 26;

/** An id that fits into a line: long ones often begin alike, so the end stays and the middle goes. */
export function shortId(id: string): string {
  const letters = [...id];
  return letters.length <= LONGEST_ID ? id : `${letters.slice(0, 6).join("")}…${letters.slice(-18).join("")}`;
}

export function isTitle(column: string): boolean {
  return TITLES.includes(column);
}
