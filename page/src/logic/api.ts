// The server's JSON, as docs/server.md has it, and its translation to the page's own types.
import type { Filter, Query } from "./address";
import type { Marks } from "./marks";
import type { Explanation, Hit, Metadata, Sequence, Value } from "./types";

export interface Column {
  name: string;
  type: "text" | "number" | "boolean" | "date" | "other";
}

export interface IndexInfo {
  name: string;
  model: string;
  preset?: string;
  sequences: number;
  windowed: boolean;
  marks: number;
  mark_names?: string[] | null;
  time_unit?: string | null;
  candidates: string;
  columns: Column[];
  explainable: boolean;
  rerank: string[];
  version: number;
  library_version: string;
  scopes: string[];
  /** Name of the key; null on a server without keys. */
  caller?: string | null;
  limits: Record<string, number>;
}

export interface Counted {
  value: Value;
  sequences: number;
}

export interface Statistics {
  sequences: number;
  events: number;
  lengths: { min: number; median: number; max: number; edges: number[]; counts: number[] };
  times: { median_span?: number; median_gap?: number; unit?: string | null };
  marks: { name: string | number; events: number }[];
  groups: Counted[];
  columns: (Column & { distinct: number; missing: number; values: Counted[] })[];
}

export interface Answer {
  query: Sequence;
  hits: Hit[];
  method: string;
  corpus: number;
  comparisons: number;
  reranked: number;
  milliseconds: Record<string, number>;
  /** Such as times that look like another unit than the model's. */
  warnings: string[];
}

interface RawSequence {
  id?: string;
  times?: number[];
  marks?: (string | number)[];
  start?: number;
  end?: number;
  group?: string;
  metadata?: Record<string, unknown>;
  values?: Record<string, (number | null)[]>;
}

interface RawHit extends RawSequence {
  id: string;
  rank: number;
  score: number;
  window?: string;
  offset?: number;
  stop?: number;
}

/** What the server refused, in its own words. `status` 0: it could not be reached. */
export class ServerError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

export interface Wanted {
  query: Query;
  k: number;
  filters: Filter[];
  expand: boolean;
  exhaustive: boolean;
  rerank: string;
  relevant: string[];
  notRelevant: string[];
}

export class Server {
  /** For a server with keys; kept for this tab alone. */
  key = sessionStorage.getItem("neuroseqret-key") ?? "";

  setKey(key: string): void {
    this.key = key;
    sessionStorage.setItem("neuroseqret-key", key);
  }

  info(): Promise<IndexInfo> {
    return this.ask("GET", "v1/index");
  }

  statistics(): Promise<Statistics> {
    return this.ask("GET", "v1/statistics");
  }

  async sample(count: number, seed: number, filters: Filter[], columns: Column[], marks: Marks): Promise<Sequence[]> {
    const options = new URLSearchParams({ sample: String(count), seed: String(seed), fields: fieldsOf(columns) });
    if (filters.length) options.set("where", whereText(filters));
    const found = await this.ask<{ sequences: RawSequence[] }>("GET", `v1/sequences?${options}`);
    return found.sequences.map((raw) => sequenceOf(raw, marks));
  }

  async list(where: string, limit: number, marks: Marks): Promise<Sequence[]> {
    const options = new URLSearchParams({ limit: String(limit), where });
    const found = await this.ask<{ sequences: RawSequence[] }>("GET", `v1/sequences?${options}`);
    return found.sequences.map((raw) => sequenceOf(raw, marks));
  }

  async sequence(id: string, marks: Marks): Promise<Sequence> {
    return sequenceOf(await this.ask<RawSequence>("GET", `v1/sequences/${encodeURIComponent(id)}`), marks);
  }

  async search(wanted: Wanted, columns: Column[], marks: Marks, signal: AbortSignal): Promise<Answer> {
    const body = {
      query: { ...queryOf(wanted.query, marks), relevant: wanted.relevant, not_relevant: wanted.notRelevant },
      k: wanted.k,
      where: wanted.filters.length ? whereText(wanted.filters) : undefined,
      expand: wanted.expand,
      exhaustive: wanted.exhaustive,
      rerank: wanted.rerank || false,
      fields: ["events", ...columns.map((column) => column.name)],
    };
    type Raw = Omit<Answer, "query" | "hits" | "milliseconds" | "warnings"> & { query: RawSequence; hits: RawHit[] };
    const reply = await this.ask<{ results: Raw[]; milliseconds: Record<string, number>; warnings: string[] }>(
      "POST", "v1/search", body, signal);
    const [result] = reply.results;
    const { milliseconds, warnings } = reply;
    return { ...result, milliseconds, warnings, query: sequenceOf(result.query, marks), hits: result.hits.map((raw) => hitOf(raw, marks)) };
  }

  async explain(query: Query, hits: string[], marks: Marks): Promise<Map<string, Explanation>> {
    type Raw = { id: string; score: number; parts: Record<string, number>; pairs: number[][] };
    const body = { query: queryOf(query, marks), hits, pairs: true };
    const reply = await this.ask<{ explanations: Raw[] }>("POST", "v1/explain", body);
    return new Map(reply.explanations.map((raw) => [raw.id, explanationOf(raw)]));
  }

  /** Store judgements; null takes one back. */
  async judge(query: Query, judged: Map<string, boolean | null>, user: string, marks: Marks): Promise<void> {
    const judgements = [...judged].map(([id, relevant]) => ({ id, relevant }));
    await this.ask("POST", "v1/feedback", { query: queryOf(query, marks), judgements, user: user || undefined });
  }

  private async ask<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const headers: Record<string, string> = { accept: "application/json" };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.key) headers.authorization = `Bearer ${this.key}`;
    let reply: Response;
    try {
      reply = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal });
    } catch (error) {
      if ((error as Error).name === "AbortError") throw error;
      throw new ServerError(0, "The server does not answer. Is it still running?");
    }
    const said = (await reply.json().catch(() => null)) as ({ detail?: unknown; title?: string } & T) | null;
    if (!reply.ok || said === null) {
      const detail = typeof said?.detail === "string" ? said.detail : (said?.title ?? `${reply.status} ${reply.statusText}`);
      throw new ServerError(reply.status, detail);
    }
    return said;
  }
}

export function queryOf(query: Query, marks: Marks): Record<string, unknown> {
  if (query.kind === "id") return { id: query.id };
  if (query.kind === "slice") return { id: query.id, events: [query.from, query.to] };
  return { times: query.times, marks: query.marks.map((mark) => marks.hasNames ? marks.name(mark) : mark) };
}

/** Events and all columns, for addresses; a name with a comma cannot be listed there. */
function fieldsOf(columns: Column[]): string {
  return ["events", ...columns.map((column) => column.name).filter((name) => !name.includes(","))].join(",");
}

/** Filters as a condition in SQL: in every column, one of the chosen values. */
export function whereText(filters: Filter[]): string {
  const columns = new Map<string, Value[]>();
  for (const { column, value } of filters) columns.set(column, [...(columns.get(column) ?? []), value]);
  const test = (value: Value) => (value === null ? "IS NULL" : `= ${typeof value === "string" ? literal(value) : value}`);
  return [...columns]
    .map(([column, values]) => `(${values.map((value) => `${quoted(column)} ${test(value)}`).join(" OR ")})`)
    .join(" AND ");
}

const literal = (text: string) => `'${text.replaceAll("'", "''")}'`;
const quoted = (column: string) => `"${column.replaceAll('"', '""')}"`;

/** A condition for sequences whose id or texts contain what was typed, in upper or lower case. */
export function findWhere(typed: string, columns: Column[]): string {
  const escaped = typed.replace(/[\\%_]/g, (sign) => `\\${sign}`);
  const forms = new Set([escaped, escaped.toLowerCase(), escaped.toUpperCase(), escaped.charAt(0).toUpperCase() + escaped.slice(1)]);
  const names = ["id", "group", ...columns.filter((column) => column.type === "text").map((column) => column.name)];
  const tests = [...new Set(names)].slice(0, 6).flatMap((name) =>
    [...forms].map((form) => `${quoted(name)} LIKE ${literal(`%${form}%`)}`));
  return tests.join(" OR ");
}

/** Some events of a sequence, as a sequence of its own. */
export function partOf(sequence: Sequence, from: number, to: number): Sequence {
  const values = Object.fromEntries(Object.entries(sequence.values).map(([name, column]) => [name, column.slice(from, to)]));
  return { ...sequence, times: sequence.times.slice(from, to), marks: sequence.marks.slice(from, to), start: null, end: null, values };
}

export function sequenceOf(raw: RawSequence, marks: Marks): Sequence {
  const times = raw.times ?? [];
  const metadata: Metadata = {};
  const values: Record<string, number[]> = {};
  for (const [name, numbers] of Object.entries(raw.values ?? {})) {
    if (numbers.length === times.length && numbers.every((one) => typeof one === "number")) values[name] = numbers as number[];
  }
  for (const [name, value] of Object.entries(raw.metadata ?? {})) {
    if (value !== null && typeof value !== "object") metadata[name] = value as Value;
  }
  const numbers = (raw.marks ?? []).map((mark) => (typeof mark === "number" ? mark : marks.find(mark)));
  return {
    id: raw.id ?? "", times, marks: numbers, start: raw.start ?? null, end: raw.end ?? null, group: raw.group ?? null,
    metadata, values,
  };
}

function hitOf(raw: RawHit, marks: Marks): Hit {
  const sequence = raw.times ? sequenceOf(raw, marks) : null;
  return {
    id: raw.id, score: raw.score, rank: raw.rank, group: raw.group ?? null,
    metadata: sequence?.metadata ?? sequenceOf(raw, marks).metadata,
    window: raw.window ?? null, offset: raw.offset ?? null, stop: raw.stop ?? null, sequence,
  };
}

/** Complete the pairs of events to the whole matrix: what is missing to the score belongs to the sequences as a whole. */
export function explanationOf(raw: { score: number; parts: Record<string, number>; pairs: number[][] }): Explanation {
  const matrix = raw.pairs.map((row) => Float64Array.from([...row, 0]));
  const sum = raw.pairs.reduce((all, row) => all + row.reduce((some, part) => some + part, 0), 0);
  const last = new Float64Array((raw.pairs[0]?.length ?? 0) + 1);
  last[last.length - 1] = raw.score - sum;
  return { score: raw.score, matrix: [...matrix, last], parts: raw.parts };
}
