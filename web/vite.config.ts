/** Builds dist/report.html: one file with its script and style inside, and hashes that allow both. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { defineConfig, type Plugin } from "vite";

const PLACEHOLDERS = ["title", "static", "data"].map((name) => `<!--plumb:${name}-->`);

function hash(text: string): string {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

function compose(script: string, style: string): string {
  // What the parser of HTML would end or change early would also change the hash.
  if (/<\/script|<script|<!--|\r|\0/i.test(script)) throw new Error("the script does not go into a page");
  if (/<\/style|\r|\0/i.test(style)) throw new Error("the style does not go into a page");
  const parts: Record<string, string> = {
    policy: [
      "default-src 'none'",
      `script-src ${hash(script)}`,
      `style-src ${hash(style)}`,
      "img-src data: blob:",
      "base-uri 'none'",
      "form-action 'none'",
    ].join("; "),
    script,
    style,
  };
  const page = readFileSync(new URL("template.html", import.meta.url), "utf8").replace(
    /%(policy|script|style)%/g,
    (_all, name: string) => parts[name],
  );
  for (const mark of PLACEHOLDERS)
    if (page.split(mark).length !== 2) throw new Error(`${mark} has to be there once`);
  return page;
}

function onePage(): Plugin {
  return {
    name: "one-page",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, file] of Object.entries(bundle)) {
        if (file.type === "chunk") script += file.code;
        else if (name.endsWith(".css")) style += String(file.source);
        else throw new Error(`${name} has no place in the page`);
        delete bundle[name];
      }
      const source = compose(script.trim(), style.trim());
      this.emitFile({ type: "asset", fileName: "report.html", source });
    },
  };
}

/** Parts of uPlot that no plot here needs; without a name for them, they are left out. */
function lessPlot(): Plugin {
  return {
    name: "less-plot",
    transform(code, id) {
      if (!id.endsWith("/uPlot.esm.js")) return null;
      const without = code
        .replace(/^\s*\(paths\.(stepped|bars|spline)\s*=.*\);$/gm, "")
        .replace(/^\s*uPlot\.(join|fmtDate|tzDate|orient)\s*=.*;$/gm, "");
      return { code: without, map: null };
    },
  };
}

export default defineConfig({
  plugins: [lessPlot(), onePage()],
  publicDir: false,
  esbuild: { jsx: "automatic", jsxImportSource: "preact", charset: "utf8", legalComments: "none" },
  build: {
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      input: "src/main.tsx",
      output: { format: "iife", inlineDynamicImports: true },
    },
  },
});
