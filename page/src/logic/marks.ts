// Colour and shape of marks. The most frequent ones get their own, the rest share one: more could not be told apart.

export type Shape = "circle" | "square" | "triangle" | "diamond" | "cross" | "bar" | "down" | "ring" | "dot";

export interface Look {
  slot: number;
  shape: Shape;
}

/** Colours are in style.css as --mark-0 to --mark-8, for light and dark. The last is for all other marks. */
export const SLOTS = 8;
export const OTHER = SLOTS;
export const SHAPES: Shape[] = ["circle", "square", "triangle", "diamond", "cross", "bar", "down", "ring", "dot"];

export class Marks {
  readonly names: string[];
  /** Whether the index knows names, so that the server is asked by name. */
  readonly hasNames: boolean;
  private readonly slots: number[];

  /** `counts[m]` is how often mark m occurs in the index, if that is known. */
  constructor(count: number, names: string[] | null, counts: number[] | null) {
    this.hasNames = !!names;
    this.names = Array.from({ length: count }, (_, mark) => names?.[mark] ?? String(mark));
    const often = (mark: number) => counts?.[mark] ?? 0;
    const chosen = this.names.map((_, mark) => mark).sort((a, b) => often(b) - often(a) || a - b);
    const own = count <= SLOTS ? count : SLOTS;
    this.slots = new Array<number>(count).fill(OTHER);
    // Neighbours in the list of marks get neighbouring slots, so that lanes follow the order of the marks.
    chosen.slice(0, own).sort((a, b) => a - b).forEach((mark, slot) => (this.slots[mark] = slot));
  }

  name(mark: number): string {
    return this.names[mark] ?? `unknown mark ${mark}`;
  }

  find(name: string): number {
    return this.names.indexOf(name);
  }

  look(mark: number): Look {
    const slot = this.slots[mark] ?? OTHER;
    return { slot, shape: SHAPES[slot] };
  }

  slot(mark: number): number {
    return this.slots[mark] ?? OTHER;
  }

  /** Marks that have a colour of their own, in the order of their slots. */
  get named(): number[] {
    return this.names.map((_, mark) => mark).filter((mark) => this.slots[mark] !== OTHER);
  }

  /** Number of marks that share the last slot. */
  get others(): number {
    return this.slots.filter((slot) => slot === OTHER).length;
  }

  /** Slots in use: lanes of a time line. */
  get lanes(): number {
    return this.named.length + (this.others > 0 ? 1 : 0);
  }
}
