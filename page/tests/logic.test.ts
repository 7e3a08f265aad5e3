import { describe, expect, it } from "vitest";
import { EMPTY, read, write, type State } from "../src/logic/address";
import { anchor, factsOf, fit, grouped, rank, titleOf } from "../src/logic/align";
import { explanationOf, findWhere, partOf, queryOf, sequenceOf, whereText } from "../src/logic/api";
import { Marks, OTHER, SLOTS } from "../src/logic/marks";
import { parsePasted, PasteError } from "../src/logic/paste";
import { duration, kept, moment, number, panned, ticks, zoomed } from "../src/logic/scale";
import { notes, playable } from "../src/logic/sound";
import { densities, layout, prefixTree } from "../src/logic/summary";
import { nearest, visible } from "../src/logic/thin";
import type { Hit, Sequence } from "../src/logic/types";
import { ofEvents, order, partners, parts, strongest } from "../src/logic/why";

const marks = new Marks(3, ["view", "buy", "leave <b>"], [10, 5, 1]);
const find = (name: string) => marks.find(name);

function sequence(times: number[], chosen: number[], more: Partial<Sequence> = {}): Sequence {
  return { id: "s", times, marks: chosen, start: null, end: null, group: null, metadata: {}, values: {}, ...more };
}

function hit(id: string, score: number, place: number, more: Partial<Hit> = {}): Hit {
  return { id, score, rank: place, group: null, metadata: {}, window: null, offset: null, stop: null, sequence: null, ...more };
}

describe("address", () => {
  const full: State = {
    query: { kind: "slice", id: "a&b=c#<script>", from: 3, to: 9 }, find: "x y", make: "draw", seed: 7, k: 50,
    filters: [{ column: "kind", value: "jig & reel" }, { column: "age", value: 3 }, { column: "none", value: null }],
    expand: true, exhaustive: true, rerank: "cross & co", align: "mark:leave <b>", rank: "events", group: "group", view: "summary", zoom: [-1.5, 20],
    chosen: "h[0:3]", liked: ["a", "b"], disliked: ["c"], onlyLiked: false, theme: "dark",
  };
  it("keeps everything", () => expect(read(`#${write(full)}`)).toEqual(full));
  it("is empty for the start page", () => {
    expect(write(EMPTY)).toBe("");
    expect(read("")).toEqual(EMPTY);
  });
  it("keeps events", () => {
    const query = { kind: "events" as const, times: [0.5, 0.5, 1e6 + 0.25], marks: [2, 0, 1] };
    expect(read(write({ ...EMPTY, query })).query).toEqual(query);
  });
  it("survives nonsense", () => {
    expect(read("#k=-3&zoom=5~1&view=x&where=[&align=up&seed=x&events=a!b&theme=pink&id=s&part=9-2")).toEqual({
      ...EMPTY, query: { kind: "id", id: "s" },
    });
  });
});

describe("align", () => {
  const one = sequence([2, 3, 5], [0, 1, 1], { start: 1, end: 6 });
  it.each([["start", 1], ["end", 6], ["clock", 0], ["mark:buy", 3], ["mark:leave <b>", null]] as const)("by %s", (by, zero) =>
    expect(anchor(one, by, find)).toBe(zero));
  it("fits the query whole although one hit is very long", () => {
    const hits = Array.from({ length: 19 }, () => sequence([0, 10], [0, 0]));
    const [from, to] = fit(sequence([0, 12], [0, 0]), [...hits, sequence([0, 9999], [0, 0])], "start", find);
    expect(from).toBeLessThanOrEqual(0);
    expect(to).toBeGreaterThan(12);
    expect(to).toBeLessThan(20);
  });
  it("ranks and groups", () => {
    const hits = [hit("a", 0.9, 1, { group: "x" }), hit("b", 0.8, 2, { group: "y", metadata: { n: 3 } }),
      hit("c", 0.7, 3, { group: "y", metadata: { n: 12 } })];
    expect(rank(hits, "n").map((one) => one.id)).toEqual(["c", "b", "a"]);
    expect(rank(hits, "score").map((one) => one.id)).toEqual(["a", "b", "c"]);
    expect(grouped(hits, "group").map((group) => [group.name, group.hits.length])).toEqual([["y", 2], ["x", 1]]);
    expect(titleOf({ id: "a", metadata: { title: " " } })).toBe("a");
    expect(titleOf({ id: `account/2024/${"x".repeat(40)}/000017`, metadata: {} })).toBe(`accoun…${"x".repeat(11)}/000017`);
  });

  it("says what the title has not said", () => {
    const metadata = { title: "The Boy's Jig", source: "boys jig", place: "Cork", empty: "", none: null, town: "cork" };
    expect(factsOf({ id: "a", group: "jig", metadata })).toEqual([["group", "jig"], ["place", "Cork"]]);
  });
});

describe("paste", () => {
  const parse = (text: string, unit: string | null = "seconds") => parsePasted(text, find, 3, unit);
  it.each([
    ["0,view\n1.5,buy", [0, 1.5], [0, 1]],
    ["time;mark\n3;buy\n1;view", [1, 3], [0, 1]],
    ["mark\ttime\nbuy\t2", [2], [1]],
    ["0 leave <b>\n1 0", [0, 1], [2, 0]],
    ['0,"view"\n1,2', [0, 1], [0, 2]],
    ['{"times": [0, 1], "marks": ["view", 1]}', [0, 1], [0, 1]],
    ['[[0, "buy"], [2, "view"]]', [0, 2], [1, 0]],
    ['{"time": 0, "mark": "buy"}\n{"time": 1, "mark": "view"}', [0, 1], [1, 0]],
    ['[{"t": 0, "type": 1}]', [0], [1]],
    ["2024-01-01T00:00:00Z,view\n2024-01-01 00:01:00,buy", [0, 60], [0, 1]],
  ])("%s", (text, times, chosen) => {
    const pasted = parse(text);
    expect(pasted.times).toEqual(times);
    expect(pasted.marks).toEqual(chosen);
  });
  it.each([
    ["", /Nothing/], ["0,sell", /no mark "sell"/], ["x,view", /neither a number nor a date/], ["[1", /Not valid JSON/],
    ["0", /no mark; write/], ['{"times": [1], "marks": []}', /1 times but 0 marks/], ["id,time,mark\n1,0,view\n2,0,view", /several/],
    ["Infinity,view", /neither|not a time/],
  ])("refuses %s", (text, problem) => {
    expect(() => parse(text)).toThrow(PasteError);
    expect(() => parse(text)).toThrow(problem);
  });
  it("refuses dates where the unit is not known", () => expect(() => parse("2024-01-01,view", "beats")).toThrow(/beats/));
  it("refuses more events than the page draws", () => expect(() => parse("0,view\n".repeat(10_001))).toThrow(/too many/));
});

describe("scale", () => {
  it("zooms around a time and pans", () => {
    expect(zoomed([0, 10], 0.5, 2)).toEqual([1, 6]);
    expect(panned([0, 10], 0.1)).toEqual([1, 11]);
    expect(kept([1000, 1010], [0, 10])[0]).toBeLessThan(11);
  });
  it("has round ticks", () => {
    expect(ticks([-0.1, 10.1], 6)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks([0, 0], 5)).toEqual([]);
  });
  it("writes dates where times count from 1970", () => {
    expect(moment(1709284440, "seconds", 3600)).toBe("2024-03-01 09:14");
    expect(moment(1709251200000, "ms", 86_400_000)).toBe("2024-03-01");
    expect(moment(75, "seconds", 1)).toBe("75");
    expect(moment(1709284440, null, 1e7)).toBe("1.71e9");
  });
  it("writes numbers and durations", () => {
    expect(number(-0.00001, 0.1)).toBe("0");
    expect(number(1234.5678, 0.01)).toBe("1,234.57");
    expect(duration(7200, "seconds")).toBe("2 hours");
    expect(duration(3, "beats")).toBe("3 beats");
  });
});

describe("marks", () => {
  it("gives the most frequent marks a colour and a shape of their own", () => {
    const many = new Marks(20, null, Array.from({ length: 20 }, (_, mark) => mark));
    expect(many.named).toEqual([12, 13, 14, 15, 16, 17, 18, 19]);
    expect(new Set(many.named.map((mark) => many.look(mark).shape)).size).toBe(SLOTS);
    expect(many.slot(0)).toBe(OTHER);
    expect(many.others).toBe(12);
  });
});

describe("thinning", () => {
  const times = Float64Array.from({ length: 10_000 }, (_, i) => i / 10);
  it("draws at most one event per pixel and lane, and all of them close up", () => {
    expect(visible(times, () => 0, [0, 1000], 500, 1).length).toBeLessThanOrEqual(501);
    expect(visible(times, () => 0, [10, 12], 500, 1)).toHaveLength(21);
  });
  it("finds the nearest event", () => {
    expect(nearest(times, 5.04)).toBe(50);
    expect(nearest(times, -3)).toBe(0);
    expect(nearest([], 1)).toBe(-1);
  });
});

describe("why", () => {
  const explanation = explanationOf({ score: 1, parts: { marks: 0.7, times: -0.2 }, pairs: [[0.1, 0.5, 0], [0.2, 0, -0.1]] });
  it("adds up to the score", () => {
    const sum = explanation.matrix.reduce((all, row) => all + row.reduce((some, part) => some + part, 0), 0);
    expect(sum).toBeCloseTo(1, 12);
  });
  it("finds partners on both sides", () => {
    expect([...partners(explanation, "query", 0)]).toEqual([0.1, 0.5, 0]);
    expect([...partners(explanation, "hit", 0)]).toEqual([0.1, 0.2]);
    expect(ofEvents(explanation, "query")[0]).toBeCloseTo(0.6, 12);
    expect(ofEvents(explanation, "hit")[1]).toBeCloseTo(0.5, 12);
  });
  it("names each event once among the strongest pairs", () => {
    const pairs = strongest(explanation, 5);
    expect(pairs.map((pair) => [pair.query, pair.hit])).toEqual([[0, 1], [1, 0]]);
    expect(order(pairs)).toBe(-1);
    expect(parts(explanation)[0]).toMatchObject({ name: "marks", value: 0.7 });
  });
});

describe("summary", () => {
  const rows = [sequence([0, 1, 2], [0, 1, 1]), sequence([0, 3, 4], [0, 1, 0]), sequence([0, 1], [1, 1])];
  it("is a tree of common beginnings", () => {
    const tree = prefixTree(rows, [0, 0, 0], 3);
    expect(tree.count).toBe(3);
    expect(tree.children[0]).toMatchObject({ mark: 0, count: 2 });
    expect(tree.children[0].children[0]).toMatchObject({ mark: 1, count: 2, time: 2 });
    expect(layout(tree, 3).filter((block) => block.level === 1).reduce((sum, block) => sum + block.height, 0)).toBeCloseTo(1, 12);
  });
  it("leaves out what has no such event", () => expect(prefixTree(rows, [0, null, 0], 3).count).toBe(2));
  it("counts every event once in the densities", () => {
    const lines = densities(rows, [0, 0, 0], (mark) => mark, 2, [-1, 6], 70);
    const total = lines.reduce((all, line) => all + line.reduce((some, value) => some + value, 0), 0);
    expect(total).toBeCloseTo(8 / 3, 9);
  });
});

describe("the server's JSON", () => {
  it("reads sequences by mark name, with values per event", () => {
    const one = sequenceOf({ id: "s", times: [0, 1], marks: ["buy", "view"], metadata: { title: "T", none: null }, values: { pitch: [60, 62] } }, marks);
    expect(one.marks).toEqual([1, 0]);
    expect(one.values).toEqual({ pitch: [60, 62] });
    expect(one.metadata).toEqual({ title: "T" });
  });
  it("quotes what users type", () => {
    expect(whereText([{ column: 'a"b', value: "it's" }, { column: "n", value: 3 }, { column: "n", value: null }])).toBe(
      `("a""b" = 'it''s') AND ("n" = 3 OR "n" IS NULL)`);
    expect(findWhere("50%_", [])).toContain(String.raw`"id" LIKE '%50\%\_%'`);
  });
  it("asks by name where marks have names", () => {
    expect(queryOf({ kind: "events", times: [0], marks: [1] }, marks)).toEqual({ times: [0], marks: ["buy"] });
    expect(queryOf({ kind: "slice", id: "s", from: 2, to: 5 }, marks)).toEqual({ id: "s", events: [2, 5] });
  });
  it("cuts parts with their values", () => {
    const part = partOf(sequence([0, 1, 2, 3], [0, 1, 2, 0], { values: { pitch: [1, 2, 3, 4] } }), 1, 3);
    expect(part).toMatchObject({ times: [1, 2], marks: [1, 2], values: { pitch: [2, 3] } });
  });
});

describe("sound", () => {
  it("plays pitches in time", () => {
    const melody = sequence([0, 1, 2, 4], [0, 0, 0, 0], { values: { pitch: [69, 81, 57, 69] } });
    expect(playable(melody)).toBe(true);
    const played = notes(melody);
    expect(played.map((note) => note.hertz)).toEqual([440, 880, 220, 440]);
    expect(played[2].at).toBeCloseTo(2 * played[1].at, 9);
    expect(notes(melody, 1, 3).map((note) => note.event)).toEqual([1, 2]);
    expect(playable(sequence([0, 1], [0, 0]))).toBe(false);
  });
});
