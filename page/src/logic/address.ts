// The whole state of the page in the address, so that a view can be sent to a colleague or bookmarked.
//
// It is in the fragment (after #): browsers never send that to the server, so that pasted data stays out of its logs and
// long sequences do not run into limits on the length of a request.
import type { Align } from "./align";
import type { Bounds, Slice, Value } from "./types";

/** What is searched for: a stored sequence, a part of one, or events of the user's own. */
export type Query =
  | { kind: "id"; id: string }
  | ({ kind: "slice" } & Slice)
  | { kind: "events"; times: number[]; marks: number[] };

export interface Filter {
  column: string;
  value: Value;
}

export interface State {
  query: Query | null;
  /** What is typed into the search box. */
  find: string;
  /** Start page: which way of making a query is open, and which sample is shown. */
  make: "" | "paste" | "draw";
  seed: number;
  k: number;
  filters: Filter[];
  expand: boolean;
  exhaustive: boolean;
  /** The second model that orders the best hits anew, by name; "" for none. */
  rerank: string;
  align: Align;
  rank: string;
  group: string;
  view: "lines" | "summary";
  /** What is shown of the time axis; null fits everything. */
  zoom: Bounds | null;
  /** The hit that is explained. */
  chosen: string;
  liked: string[];
  disliked: string[];
  /** Refine by what is liked alone, which harms less than subtracting what is disliked. */
  onlyLiked: boolean;
  theme: "" | "light" | "dark";
}

export const EMPTY: State = {
  query: null, find: "", make: "", seed: 1, k: 20, filters: [], expand: false, exhaustive: false, rerank: "", align: "start", rank: "score", group: "",
  view: "lines", zoom: null, chosen: "", liked: [], disliked: [], onlyLiked: true, theme: "",
};

export const MOST_HITS = 200;

export function write(state: State): string {
  const out = new URLSearchParams();
  const put = (name: string, value: string, usual: string) => value !== usual && out.append(name, value);
  const { query } = state;
  if (query?.kind === "id") out.append("id", query.id);
  if (query?.kind === "slice") {
    out.append("id", query.id);
    out.append("part", `${query.from}-${query.to}`);
  }
  if (query?.kind === "events") out.append("events", writeEvents(query.times, query.marks));
  put("find", state.find, "");
  put("make", state.make, "");
  put("seed", String(state.seed), String(EMPTY.seed));
  put("k", String(state.k), String(EMPTY.k));
  for (const filter of state.filters) out.append("where", JSON.stringify([filter.column, filter.value]));
  put("expand", String(state.expand), "false");
  put("exhaustive", String(state.exhaustive), "false");
  put("rerank", state.rerank, "");
  put("align", state.align, EMPTY.align);
  put("rank", state.rank, EMPTY.rank);
  put("group", state.group, "");
  put("view", state.view, EMPTY.view);
  if (state.zoom) out.append("zoom", state.zoom.map((edge) => String(+edge.toPrecision(8))).join("~"));
  put("hit", state.chosen, "");
  for (const id of state.liked) out.append("like", id);
  for (const id of state.disliked) out.append("dislike", id);
  put("only", String(state.onlyLiked), "true");
  put("theme", state.theme, "");
  return out.toString();
}

export function read(fragment: string): State {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const k = Number(given.get("k"));
  const seed = Number(given.get("seed") ?? EMPTY.seed);
  const make = given.get("make");
  const view = given.get("view");
  const theme = given.get("theme");
  const align = given.get("align") ?? "";
  return {
    query: readQuery(given),
    find: given.get("find") ?? "",
    make: make === "paste" || make === "draw" ? make : "",
    seed: Number.isSafeInteger(seed) && seed >= 0 ? seed : EMPTY.seed,
    k: Number.isInteger(k) && k >= 1 ? Math.min(k, MOST_HITS) : EMPTY.k,
    filters: given.getAll("where").flatMap(readFilter),
    expand: given.get("expand") === "true",
    exhaustive: given.get("exhaustive") === "true",
    rerank: given.get("rerank") ?? "",
    align: ["start", "end", "clock"].includes(align) || align.startsWith("mark:") ? (align as Align) : EMPTY.align,
    rank: given.get("rank") ?? EMPTY.rank,
    group: given.get("group") ?? "",
    view: view === "summary" ? view : "lines",
    zoom: readZoom(given.get("zoom")),
    chosen: given.get("hit") ?? "",
    liked: unique(given.getAll("like")),
    disliked: unique(given.getAll("dislike")),
    onlyLiked: given.get("only") !== "false",
    theme: theme === "light" || theme === "dark" ? theme : "",
  };
}

function readQuery(given: URLSearchParams): Query | null {
  const id = given.get("id");
  const part = /^(\d+)-(\d+)$/.exec(given.get("part") ?? "");
  if (id !== null && part && Number(part[1]) < Number(part[2])) {
    return { kind: "slice", id, from: Number(part[1]), to: Number(part[2]) };
  }
  if (id !== null) return { kind: "id", id };
  const events = given.get("events");
  return events === null ? null : readEvents(events);
}

function readFilter(text: string): Filter[] {
  try {
    const [column, value] = JSON.parse(text) as unknown[];
    const plain = value === null || ["string", "number", "boolean"].includes(typeof value);
    return typeof column === "string" && plain ? [{ column, value: value as Value }] : [];
  } catch {
    return [];
  }
}

function readZoom(text: string | null): Bounds | null {
  const [from, to] = (text ?? "").split("~").map(Number);
  return Number.isFinite(from) && Number.isFinite(to) && from < to ? [from, to] : null;
}

/** "mark:gap" per event, gaps in plain numbers: short, and readable in an address. */
function writeEvents(times: number[], marks: number[]): string {
  return times.map((time, i) => `${marks[i]}_${+(i ? time - times[i - 1] : time).toPrecision(9)}`).join("!");
}

function readEvents(text: string): Query | null {
  const times: number[] = [];
  const marks: number[] = [];
  let now = 0;
  for (const event of text.split("!")) {
    const found = /^(\d+)_(-?[\d.e+-]+)$/.exec(event);
    if (!found || !Number.isFinite(Number(found[2]))) return null;
    now += Number(found[2]);
    times.push(now);
    marks.push(Number(found[1]));
  }
  return times.length ? { kind: "events", times, marks } : null;
}

function unique(ids: string[]): string[] {
  return [...new Set(ids)];
}
