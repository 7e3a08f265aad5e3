import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { fingerprint } from "./fingerprint.ts";

/** Writes the hash of the source beside the build. */
function stamp(): Plugin {
  return {
    name: "stamp",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "source.sha256.txt", source: `${fingerprint(import.meta.dirname)}\n` });
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
