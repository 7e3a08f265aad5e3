// Events that a user pastes, drops or uploads: CSV, JSON or JSON lines, with numbers or dates and names of marks.

export interface Pasted {
  times: number[];
  marks: number[];
  /** What was understood, in words. */
  note: string;
}

/** The message is shown to the user as it is. */
export class PasteError extends Error {}

export const MOST_EVENTS = 10_000;
const TIME = ["time", "times", "t", "timestamp", "timestamps", "when", "date", "datetime", "time_since_start"];
const MARK = ["mark", "marks", "label", "labels", "type", "event", "what", "type_event", "kind", "action"];
const SECONDS: Record<string, number> = { seconds: 1, s: 1, minutes: 60, hours: 3600, days: 86400, weeks: 604800 };

interface Row {
  time: unknown;
  mark: unknown;
}

/** Read one sequence. `find` gives the number of a mark by its name (-1: unknown), `count` is how many marks there are. */
export function parsePasted(text: string, find: (name: string) => number, count: number, unit: string | null): Pasted {
  const trimmed = text.replace(/^\uFEFF/, "").trim();
  if (!trimmed) throw new PasteError("Nothing to read: paste one event per line, such as 0.5,login");
  const rows = /^[[{]/.test(trimmed) ? fromJson(trimmed) : fromTable(trimmed);
  if (!rows.length) throw new PasteError("No events found: give one time and one mark per event");
  if (rows.length > MOST_EVENTS) {
    throw new PasteError(`${rows.length.toLocaleString("en")} events are too many for the page; it takes 10,000`);
  }
  const dates = rows.some((row) => typeof row.time === "string" && !isNumber(row.time));
  const factor = SECONDS[(unit ?? "").toLowerCase()];
  if (dates && factor === undefined) {
    throw new PasteError(`The times are dates, but this index counts time in ${unit ?? "an unnamed unit"}; give numbers`);
  }
  const events = rows.map((row, place) => ({
    time: dates ? dateOf(row.time, place) / 1000 / factor : numberOf(row.time, place),
    mark: markOf(row.mark, place, find, count),
  }));
  const sorted = events.every((event, i) => !i || events[i - 1].time <= event.time);
  events.sort((a, b) => a.time - b.time);
  const zero = dates ? events[0].time : 0;
  const note = [`${events.length} event${events.length === 1 ? "" : "s"}`];
  if (dates) note.push(`dates counted in ${unit} from the first event`);
  if (!sorted) note.push("sorted by time");
  return { times: events.map((e) => e.time - zero), marks: events.map((e) => e.mark), note: note.join(", ") };
}

function fromJson(text: string): Row[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    const lines = text.split(/\r?\n/).filter((line) => line.trim());
    try {
      parsed = lines.map((line) => JSON.parse(line));
    } catch {
      throw new PasteError(`Not valid JSON: ${(error as Error).message}`);
    }
  }
  if (Array.isArray(parsed) && parsed.length === 1 && !Array.isArray(parsed[0])) parsed = onlyEvent(parsed[0]) ?? parsed;
  if (isObject(parsed) && Array.isArray(parsed.events)) parsed = parsed.events;
  if (isObject(parsed)) {
    const times = pick(parsed, TIME);
    const marks = pick(parsed, MARK);
    if (!Array.isArray(times) || !Array.isArray(marks)) {
      throw new PasteError('An object needs "times" and "marks", two lists of equal length, or "events"');
    }
    if (times.length !== marks.length) throw new PasteError(`${times.length} times but ${marks.length} marks`);
    return times.map((time, i) => ({ time, mark: marks[i] }));
  }
  if (!Array.isArray(parsed)) throw new PasteError("JSON must be an object with times and marks, or a list of events");
  return parsed.map((item, place) => {
    if (Array.isArray(item) && item.length >= 2) return { time: item[0], mark: item[1] };
    if (isObject(item)) return { time: pick(item, TIME), mark: pick(item, MARK) };
    throw new PasteError(`Event ${place + 1} is not a pair of time and mark`);
  });
}

/** One line of JSON lines may be a whole sequence. */
function onlyEvent(item: unknown): unknown {
  return isObject(item) && (Array.isArray(pick(item, TIME)) || Array.isArray(item.events)) ? item : null;
}

function fromTable(text: string): Row[] {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() && !line.startsWith("#"));
  const separator = [",", "\t", ";"].find((sign) => lines[0].includes(sign)) ?? " ";
  const cells = lines.map((line) => split(line.trim(), separator));
  const head = cells[0].map((cell) => cell.toLowerCase());
  const named = { time: head.findIndex((name) => TIME.includes(name)), mark: head.findIndex((name) => MARK.includes(name)) };
  const hasHead = named.time >= 0 || named.mark >= 0;
  const time = named.time >= 0 ? named.time : 0;
  const mark = named.mark >= 0 ? named.mark : time === 0 ? 1 : 0;
  const ids = head.findIndex((name) => ["id", "sequence", "user", "seq_id", "seq_idx"].includes(name));
  const body = hasHead ? cells.slice(1) : cells;
  if (ids >= 0 && new Set(body.map((row) => row[ids])).size > 1) {
    throw new PasteError("The table has several sequences; paste one of them");
  }
  return body.map((row, place) => {
    if (row.length < 2) throw new PasteError(`Line ${place + 1 + Number(hasHead)}: no mark; write time${separator}mark`);
    return { time: row[time], mark: row[mark] };
  });
}

/** Split a line at the separator, not inside double quotes. */
function split(line: string, separator: string): string[] {
  if (separator === " ") return line.split(/\s+/).reduce<string[]>(
    // Everything after the time is the mark: names may have spaces.
    (out, word) => (out.length < 2 ? [...out, word] : [out[0], `${out[1]} ${word}`]), []);
  const out: string[] = [];
  let cell = "";
  let quoted = false;
  for (const sign of line) {
    if (sign === '"') quoted = !quoted;
    else if (sign === separator && !quoted) {
      out.push(cell.trim());
      cell = "";
    } else cell += sign;
  }
  return [...out, cell.trim()];
}

function markOf(given: unknown, place: number, find: (name: string) => number, count: number): number {
  const named = find(String(given));
  if (named >= 0) return named;
  const mark = typeof given === "number" || isNumber(String(given)) ? Number(given) : NaN;
  if (Number.isInteger(mark) && mark >= 0 && mark < count) return mark;
  throw new PasteError(`Event ${place + 1}: this index has no mark ${JSON.stringify(given)}`);
}

function numberOf(given: unknown, place: number): number {
  const time = typeof given === "number" ? given : isNumber(given) ? Number(given) : NaN;
  if (!Number.isFinite(time)) throw new PasteError(`Event ${place + 1}: ${JSON.stringify(given) ?? "nothing"} is not a time`);
  return time;
}

function dateOf(given: unknown, place: number): number {
  // A date without a zone is read as UTC, as everywhere else in NeuroSeqRet.
  const text = String(given).replace(" ", "T");
  const time = Date.parse(/T.*(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes("T") ? text : `${text}Z`);
  if (Number.isNaN(time)) throw new PasteError(`Event ${place + 1}: ${JSON.stringify(given)} is neither a number nor a date`);
  return time;
}

function isNumber(text: unknown): boolean {
  return typeof text === "string" && text.trim() !== "" && Number.isFinite(Number(text));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function pick(from: Record<string, unknown>, names: string[]): unknown {
  for (const name of Object.keys(from)) if (names.includes(name.toLowerCase())) return from[name];
  return undefined;
}
