// What the page knows of sequences and hits, independent of how the server writes them.

export type Value = string | number | boolean | null;
export type Metadata = Record<string, Value>;

/** Events in order of time. Marks are numbers; `Marks` has their names. */
export interface Sequence {
  id: string;
  times: number[];
  marks: number[];
  start: number | null;
  end: number | null;
  group: string | null;
  metadata: Metadata;
  /** One number per event under a name, such as a pitch or an amount. */
  values: Record<string, number[]>;
}

/** A hit of a search. Its sequence is there once it has been loaded. */
export interface Hit {
  id: string;
  score: number;
  rank: number;
  group: string | null;
  metadata: Metadata;
  /** Sub-sequence search: the window's id, and its events `offset` to `stop` (exclusive) of the whole sequence. */
  window: string | null;
  offset: number | null;
  stop: number | null;
  sequence: Sequence | null;
}

/** The split of a score: `matrix[i][j]` belongs to event i of the query and j of the hit; the last ones to the whole. */
export interface Explanation {
  score: number;
  matrix: Float64Array[];
  parts: Record<string, number>;
}

/** Events `from` to `to` (exclusive) of a sequence. */
export interface Slice {
  id: string;
  from: number;
  to: number;
}

export type Bounds = [from: number, to: number];
