// All hits in one picture: a tree of common beginnings (LifeFlow), and densities of marks over time.
import type { Bounds, Sequence } from "./types";

export interface Node {
  /** -1 for the root. */
  mark: number;
  count: number;
  /** Mean time since the anchor at which this event comes. */
  time: number;
  rows: number[];
  children: Node[];
}

/** The tree of the marks that follow the anchor. A node holds all sequences that agree up to it; one alone has no children. */
export function prefixTree(sequences: Sequence[], anchors: (number | null)[], depth: number): Node {
  const rows = sequences.map((_, row) => row).filter((row) => anchors[row] !== null);
  const firsts = sequences.map((one, row) => one.times.findIndex((time) => time >= (anchors[row] ?? 0)));
  const grow = (mark: number, members: number[], level: number): Node => {
    const at = (row: number) => sequences[row].times[firsts[row] + level - 1] - (anchors[row] ?? 0);
    const time = level === 0 ? 0 : members.reduce((sum, row) => sum + at(row), 0) / members.length;
    const next = new Map<number, number[]>();
    if (level < depth && (members.length > 1 || level === 0)) {
      for (const row of members) {
        const place = firsts[row] + level;
        if (firsts[row] < 0 || place >= sequences[row].marks.length) continue;
        const follows = sequences[row].marks[place];
        next.set(follows, [...(next.get(follows) ?? []), row]);
      }
    }
    const children = [...next].map(([follows, some]) => grow(follows, some, level + 1));
    children.sort((a, b) => b.count - a.count || a.mark - b.mark);
    return { mark, count: members.length, time, rows: members, children };
  };
  return grow(-1, rows, 0);
}

export interface Block {
  node: Node;
  level: number;
  x: number;
  width: number;
  y: number;
  height: number;
}

/** Blocks of the tree in the unit square: the height is the share of sequences, a column is one event. */
export function layout(root: Node, depth: number): Block[] {
  const blocks: Block[] = [];
  const place = (node: Node, level: number, y: number) => {
    if (level > 0) {
      const height = node.count / root.count;
      blocks.push({ node, level, x: (level - 1) / depth, width: 1 / depth, y, height });
    }
    let below = y;
    for (const child of node.children) {
      place(child, level + 1, below);
      below += child.count / root.count;
    }
  };
  if (root.count) place(root, 0, 0);
  return blocks;
}

/** Events per slot and bin, smoothed over neighbouring bins, as a share of the sequences: (slots, bins). */
export function densities(
  sequences: Sequence[], anchors: (number | null)[], slotOf: (mark: number) => number, slots: number,
  [from, to]: Bounds, bins: number,
): Float64Array[] {
  const counts = Array.from({ length: slots }, () => new Float64Array(bins));
  const scale = bins / (to - from);
  sequences.forEach((one, row) => {
    const zero = anchors[row];
    if (zero === null) return;
    one.times.forEach((time, event) => {
      const bin = Math.floor((time - zero - from) * scale);
      if (bin >= 0 && bin < bins) counts[slotOf(one.marks[event])][bin] += 1 / sequences.length;
    });
  });
  return counts.map((line) => line.map((value, bin) => (2 * value + (line[bin - 1] ?? value) + (line[bin + 1] ?? value)) / 4));
}
