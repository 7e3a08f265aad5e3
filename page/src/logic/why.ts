// An explanation in words and in lights: what the parts of a score say, and which events of the hit belong to one of the query.
import type { Explanation } from "./types";

const WORDS: Record<string, string> = {
  marks: "which events happen",
  times: "when they happen",
  both: "marks and times together",
  "marks and times": "marks and times together",
  "whole sequence": "the sequences as a whole",
};

export interface Part {
  name: string;
  words: string;
  value: number;
  /** Share of the sum of absolute parts. */
  share: number;
}

export function parts(explanation: Explanation): Part[] {
  const entries = Object.entries(explanation.parts);
  const total = entries.reduce((sum, [, value]) => sum + Math.abs(value), 0) || 1;
  return entries
    .map(([name, value]) => ({ name, words: WORDS[name] ?? name, value, share: Math.abs(value) / total }))
    .sort((a, b) => b.value - a.value);
}

/** For one event of the query (or of the hit), the part that it gives with every event of the other side. */
export function partners(explanation: Explanation, side: "query" | "hit", event: number): Float64Array {
  const { matrix } = explanation;
  const rows = matrix.length - 1;
  const columns = matrix[0].length - 1;
  if (side === "query") return matrix[event]?.slice(0, columns) ?? new Float64Array(columns);
  return Float64Array.from({ length: rows }, (_, row) => matrix[row][event] ?? 0);
}

/** What every event of one side gives together with the whole other side. */
export function ofEvents(explanation: Explanation, side: "query" | "hit"): Float64Array {
  const { matrix } = explanation;
  if (side === "query") return Float64Array.from(matrix.slice(0, -1), (row) => row.reduce((sum, part) => sum + part, 0));
  const columns = matrix[0].length - 1;
  const sums = new Float64Array(columns);
  for (const row of matrix) for (let column = 0; column < columns; column++) sums[column] += row[column];
  return sums;
}

export interface Pair {
  query: number;
  hit: number;
  value: number;
}

/** The pairs of events that give most, each event at most once, so that the list does not repeat itself. */
export function strongest(explanation: Explanation, most: number): Pair[] {
  const pairs: Pair[] = [];
  explanation.matrix.slice(0, -1).forEach((row, query) => {
    for (let hit = 0; hit < row.length - 1; hit++) if (row[hit] > 0) pairs.push({ query, hit, value: row[hit] });
  });
  pairs.sort((a, b) => b.value - a.value);
  const seen = { query: new Set<number>(), hit: new Set<number>() };
  const found: Pair[] = [];
  for (const pair of pairs) {
    if (seen.query.has(pair.query) || seen.hit.has(pair.hit)) continue;
    seen.query.add(pair.query);
    seen.hit.add(pair.hit);
    found.push(pair);
    if (found.length === most) break;
  }
  return found;
}

/** How far matching events keep their order, in -1..1: Kendall's tau of the strongest pairs. */
export function order(pairs: Pair[]): number | null {
  let agree = 0;
  let all = 0;
  for (let i = 0; i < pairs.length; i++) {
    for (let j = 0; j < i; j++) {
      all += 1;
      agree += Math.sign((pairs[i].query - pairs[j].query) * (pairs[i].hit - pairs[j].hit));
    }
  }
  return all ? agree / all : null;
}
