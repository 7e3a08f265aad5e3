// Hashes of everything the build is made of, and of the build. The build carries both, and a Python test computes them
// again, so that nobody can commit a page that is not the build of its source.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Paths relative to `page/` that decide what the build looks like; folders are taken whole. */
export const SOURCES = ["fingerprint.ts", "index.html", "package-lock.json", "package.json", "src", "vite.config.ts"];

/** SHA-256 over "path NUL length NUL content" of every file, in the order of the paths. */
export function fingerprint(root: string, names: string[]): string {
  const hash = createHash("sha256");
  for (const path of names.flatMap((name) => files(root, name)).sort()) {
    const content = readFileSync(join(root, path));
    hash.update(`${path}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

function files(root: string, name: string): string[] {
  try {
    return readdirSync(join(root, name)).flatMap((inner) => files(root, `${name}/${inner}`));
  } catch {
    return [name]; // not a folder
  }
}
