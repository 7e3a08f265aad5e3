import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { fingerprint, SOURCES } from "./fingerprint.ts";

/** Writes the hashes of the source and of the built files beside the build. */
function stamp(): Plugin {
  return {
    name: "stamp",
    writeBundle({ dir }) {
      const source = fingerprint(import.meta.dirname, SOURCES);
      const build = fingerprint(dir!, readdirSync(dir!));
      writeFileSync(join(dir!, "sha256.txt"), `source ${source}\nbuild ${build}\n`);
    },
  };
}

export default defineConfig({
  // "tree" builds every fragment by DOM calls: the bundle has no innerHTML, and a strict CSP can forbid it.
  plugins: [svelte({ compilerOptions: { fragments: "tree" } }), stamp()],
  base: "./",
  build: {
    outDir: "../src/neuroseqret/serving/page",
    emptyOutDir: true,
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      // Names without hashes, so that a change of the source changes the same files.
      output: { entryFileNames: "page.js", assetFileNames: "[name][extname]", codeSplitting: false },
    },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8765" } },
  test: { include: ["tests/**/*.test.ts"] },
});
