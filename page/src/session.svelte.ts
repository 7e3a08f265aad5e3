// The page's state: what the address says, what the server answered, and what follows from both.
import { tick } from "svelte";
import { EMPTY, read, write, type Query, type State } from "./logic/address";
import { anchor, fit } from "./logic/align";
import { partOf, Server, ServerError, type Answer, type IndexInfo, type Statistics } from "./logic/api";
import { readInk, type Ink } from "./logic/drawing";
import { Marks } from "./logic/marks";
import { ofEvents, partners } from "./logic/why";
import { kept, panned, zoomed } from "./logic/scale";
import type { Bounds, Explanation, Hit, Sequence } from "./logic/types";

/** Which event is under the pointer or the keyboard: of the query (`hit` is ""), or of a hit. */
export interface Pointed {
  hit: string;
  event: number;
}

class Session {
  readonly server = new Server();
  state = $state<State>(read(location.hash));
  info = $state.raw<IndexInfo | null>(null);
  statistics = $state.raw<Statistics | null>(null);
  marks = $state.raw(new Marks(0, null, null));
  answer = $state.raw<Answer | null>(null);
  searching = $state(false);
  problem = $state("");
  needsKey = $state(false);
  explanations = $state.raw(new Map<string, Explanation>());
  explaining = $state.raw(new Set<string>());
  whyNot = $state("");
  pointed = $state.raw<Pointed | null>(null);
  /** The part that is selected: which line, and its events. */
  brush = $state.raw<{ line: string; range: Bounds } | null>(null);
  /** A file that was dropped anywhere on the start page, until it is read. */
  dropped = $state.raw<File | null>(null);
  /** Dragging selects instead of moving the time axis. */
  selecting = $state(false);
  user = $state(localStorage.getItem("neuroseqret-user") ?? "");
  ink = $state.raw<Ink>(readInk());
  /** Said to screen readers. */
  said = $state("");

  private running: AbortController | null = null;
  private asked = "";
  private undone: { liked: string[]; disliked: string[] }[] = $state.raw([]);

  /** Key of a hit: the window's id where windows are indexed. */
  readonly keyOf = (hit: Hit) => hit.window ?? hit.id;
  readonly markOf = (name: string) => this.marks.find(name);

  shown = $derived(this.answer?.hits ?? []);
  chosen = $derived(this.shown.find((hit) => this.keyOf(hit) === this.state.chosen) ?? null);
  fitted = $derived<Bounds>(
    fit(this.answer?.query ?? null, this.shown.flatMap((hit) => hit.sequence ?? []), this.state.align, this.markOf),
  );
  view = $derived<Bounds>(this.state.zoom ?? this.fitted);
  title = $derived(this.info?.name ?? "");

  async start(): Promise<void> {
    window.addEventListener("hashchange", () => {
      this.state = read(location.hash);
      this.applyTheme();
      void this.search();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.applyTheme());
    this.applyTheme();
    await this.load();
  }

  async load(): Promise<void> {
    this.needsKey = false;
    this.problem = "";
    try {
      const [info, statistics] = await Promise.all([this.server.info(), this.server.statistics()]);
      const often = new Map(statistics.marks.map((mark) => [String(mark.name), mark.events]));
      const counts = Array.from({ length: info.marks }, (_, m) => often.get(info.mark_names?.[m] ?? String(m)) ?? 0);
      this.marks = new Marks(info.marks, info.mark_names ?? null, counts);
      this.statistics = statistics;
      this.info = info;
      document.title = `${info.name} · NeuroSeqRet`;
      await this.search();
    } catch (error) {
      this.fail(error);
    }
  }

  /** Change the state and its address; the browser's back button undoes it if `step` is true. */
  set(change: Partial<State>, step = true): void {
    this.state = { ...this.state, ...change };
    const address = `#${write(this.state)}`;
    if (address === location.hash || (address === "#" && !location.hash)) return;
    if (step) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    void this.search();
  }

  ask(query: Query): void {
    this.brush = null;
    const { theme, k, expand, exhaustive, rerank, onlyLiked, align } = this.state;
    this.undone = [];
    this.set({ ...EMPTY, theme, k, expand, exhaustive, rerank, onlyLiked, align, query });
    scrollTo(0, 0);
  }

  home(): void {
    this.set({ ...EMPTY, theme: this.state.theme });
  }

  /** Search again if what is asked has changed. */
  async search(): Promise<void> {
    const { query, k, filters, expand, exhaustive, rerank, liked, disliked, onlyLiked } = this.state;
    if (!this.info) return;
    const relevant = liked;
    const notRelevant = onlyLiked ? [] : disliked;
    const asked = JSON.stringify([query, k, filters, expand, exhaustive, rerank, relevant, notRelevant]);
    if (asked === this.asked) return;
    const sameQuery = this.asked !== "" && JSON.stringify((JSON.parse(this.asked) as unknown[])[0]) === JSON.stringify(query);
    this.asked = asked;
    this.running?.abort();
    this.problem = "";
    if (!sameQuery) {
      this.answer = null;
      this.explanations = new Map();
    }
    this.whyNot = "";
    if (!query) return;
    const running = (this.running = new AbortController());
    this.searching = true;
    try {
      const wanted = { query, k, filters, expand, exhaustive, rerank, relevant, notRelevant };
      const [answer, stored] = await Promise.all([
        this.server.search(wanted, this.info.columns, this.marks, running.signal), this.stored(query)]);
      answer.query = stored ?? answer.query;
      if (this.info.windowed) await this.loadParents(answer.hits);
      this.answer = answer;
      this.said = `${answer.hits.length} hits`;
      await tick();
      if (this.state.chosen) void this.explain(this.state.chosen);
    } catch (error) {
      if ((error as Error).name !== "AbortError") this.fail(error);
    } finally {
      if (this.running === running) this.searching = false;
    }
  }

  /** The query with its title and values, which the answer to a search does not repeat. */
  private async stored(query: Query): Promise<Sequence | null> {
    if (query.kind === "events") return null;
    const whole = await this.server.sequence(query.id, this.marks).catch(() => null);
    return whole && query.kind === "slice" ? partOf(whole, query.from, query.to) : whole;
  }

  /** Windows are shown inside the whole sequences that they were cut from. */
  private async loadParents(hits: Hit[]): Promise<void> {
    const parents = [...new Set(hits.filter((hit) => hit.window).map((hit) => hit.id))];
    await Promise.all(parents.map(async (id) => {
      const parent = await this.server.sequence(id, this.marks).catch(() => null);
      for (const hit of hits.filter((one) => one.id === id)) {
        if (parent && hit.stop !== null && hit.stop <= parent.times.length) hit.sequence = parent;
        else [hit.offset, hit.stop] = [0, hit.sequence?.times.length ?? 0]; // a part of it has been removed
      }
    }));
  }

  /** Load the splits of some hits' scores, each once. */
  async explain(...keys: string[]): Promise<void> {
    const { query } = this.state;
    const missing = keys.filter((key) => !this.explanations.has(key) && !this.explaining.has(key));
    if (!query || !this.info?.explainable || !missing.length) return;
    this.explaining = new Set([...this.explaining, ...missing]);
    try {
      const found = await this.server.explain(query, missing, this.marks);
      if (this.state.query === query) this.explanations = new Map([...this.explanations, ...found]);
    } catch (error) {
      this.whyNot = (error as Error).message;
    } finally {
      this.explaining = new Set([...this.explaining].filter((key) => !missing.includes(key)));
    }
  }

  /** Which events of a line light up: the partners of the event under the pointer, else what gives to the chosen score. */
  lightOf(hit: Hit | null): Float64Array | null {
    const { pointed, chosen } = this;
    const of = (one: Hit | null) => (one ? (this.explanations.get(this.keyOf(one)) ?? null) : null);
    if (hit === null) {
      const other = pointed?.hit ? (this.shown.find((one) => this.keyOf(one) === pointed.hit) ?? null) : null;
      const explained = of(other);
      if (explained && other && pointed) return partners(explained, "hit", pointed.event - (other.offset ?? 0));
      const ofChosen = of(chosen);
      return ofChosen && !pointed ? ofEvents(ofChosen, "query") : null;
    }
    const explained = of(hit);
    if (!explained) return null;
    if (pointed?.hit === "") return shifted(partners(explained, "query", pointed.event), hit.offset ?? 0);
    return hit === chosen && !pointed ? shifted(ofEvents(explained, "hit"), hit.offset ?? 0) : null;
  }

  choose(key: string): void {
    this.whyNot = "";
    this.set({ chosen: key === this.state.chosen ? "" : key }, false);
    if (this.state.chosen) void this.explain(key);
  }

  // ------------------------------------------------------------ time axis

  zeroOf(sequence: Sequence): number | null {
    return anchor(sequence, this.state.align, this.markOf);
  }

  zoom(factor: number, at?: number): void {
    const middle = (this.view[0] + this.view[1]) / 2;
    this.look(zoomed(this.view, factor, at ?? middle));
  }

  pan(share: number): void {
    this.look(panned(this.view, share));
  }

  look(view: Bounds | null): void {
    this.state.zoom = view && kept(view, this.fitted);
    clearTimeout(this.later);
    this.later = setTimeout(() => this.set({}, false), 200); // browsers limit how often an address may change
  }

  private later: ReturnType<typeof setTimeout> | undefined;

  // ------------------------------------------------------------ feedback

  get canUndo(): boolean {
    return this.undone.length > 0;
  }

  /** Judge a hit, or take the judgement back if it is the same again. */
  judge(hit: Hit, relevant: boolean): void {
    const { liked, disliked, query } = this.state;
    if (!query) return;
    const now = liked.includes(hit.id) ? true : disliked.includes(hit.id) ? false : null;
    const next = now === relevant ? null : relevant;
    const without = (ids: string[]) => ids.filter((id) => id !== hit.id);
    this.undone = [...this.undone, { liked, disliked }];
    this.judged(
      next === true ? [...without(liked), hit.id] : without(liked),
      next === false ? [...without(disliked), hit.id] : without(disliked),
    );
  }

  undo(): void {
    const last = this.undone[this.undone.length - 1];
    if (!last) return;
    this.undone = this.undone.slice(0, -1);
    this.judged(last.liked, last.disliked);
  }

  reset(): void {
    this.undone = [...this.undone, { liked: this.state.liked, disliked: this.state.disliked }];
    this.judged([], []);
  }

  private judged(liked: string[], disliked: string[]): void {
    const { query } = this.state;
    const before = new Map<string, boolean>([
      ...this.state.liked.map((id) => [id, true] as const), ...this.state.disliked.map((id) => [id, false] as const)]);
    const after = new Map<string, boolean>([
      ...liked.map((id) => [id, true] as const), ...disliked.map((id) => [id, false] as const)]);
    const changed = new Map<string, boolean | null>();
    for (const id of new Set([...before.keys(), ...after.keys()])) {
      if (before.get(id) !== after.get(id)) changed.set(id, after.get(id) ?? null);
    }
    this.set({ liked, disliked });
    if (query && changed.size) {
      this.server.judge(query, changed, this.user, this.marks).catch((error: unknown) => this.fail(error));
    }
  }

  setUser(name: string): void {
    this.user = name;
    localStorage.setItem("neuroseqret-user", name);
  }

  // ------------------------------------------------------------ parts of sequences

  /** Search with some events of a line: as a part of a stored sequence where that is possible, else by the events. */
  askPart(line: string, sequence: Sequence, [from, to]: Bounds): void {
    const { query } = this.state;
    const stored = !this.info?.windowed && (line !== "" || query?.kind !== "events");
    const offset = line === "" && query?.kind === "slice" ? query.from : 0;
    if (stored) this.ask({ kind: "slice", id: sequence.id, from: from + offset, to: to + offset });
    else {
      const { times, marks } = partOf(sequence, from, to);
      this.ask({ kind: "events", times: times.map((time) => time - times[0]), marks });
    }
  }

  // ------------------------------------------------------------ look

  get dark(): boolean {
    return this.state.theme ? this.state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  toggleTheme(): void {
    this.set({ theme: this.dark ? "light" : "dark" }, false);
    this.applyTheme();
  }

  private applyTheme(): void {
    document.documentElement.dataset.theme = this.dark ? "dark" : "light";
    this.ink = readInk();
  }

  private fail(error: unknown): void {
    if (error instanceof ServerError && (error.status === 401 || (error.status === 403 && !this.info))) this.needsKey = true;
    this.problem = (error as Error).message;
  }
}

/** Move values behind `by` empty places: the events of a window inside its sequence. */
function shifted(values: Float64Array, by: number): Float64Array {
  const moved = new Float64Array(values.length + by);
  moved.set(values, by);
  return moved;
}

export const session = new Session();
