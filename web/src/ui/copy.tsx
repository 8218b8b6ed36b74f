import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { visible } from "../core/text";

function copyOldWay(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "offscreen";
  document.body.append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  return done;
}

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyOldWay(text);
  }
}

interface CopyProps {
  text: () => string;
  label: string; // on the button
  name?: string; // read out, when the label alone does not tell
}

export function CopyButton({ text, label, name }: CopyProps): JSX.Element {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(""), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const run = async (): Promise<void> => setSaid((await copy(text())) ? "Copied" : "Not copied");
  return (
    <button type="button" class="copy" aria-label={name} onClick={() => void run()}>
      {said || label}
      <span class="offscreen" role="status">
        {said}
      </span>
    </button>
  );
}

/** A command line with a button; what is copied is what is seen. */
export function Command({ text }: { text: string }): JSX.Element {
  const line = visible(text);
  return (
    <div class="command">
      <code tabIndex={0}>{line}</code>
      <CopyButton text={() => line} label="Copy" name="Copy this command" />
    </div>
  );
}
