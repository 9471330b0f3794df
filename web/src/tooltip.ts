// The box beside the pointer.
import type { Layer } from "./data";
import { h, shown } from "./dom";
import { label } from "./format";
import { phase_variable } from "./theme";

export class Tooltip {
  readonly element = h("div", { class: "tooltip", hidden: true, role: "tooltip" });

  show(x: number, y: number, title: string, layer: Layer | undefined, lines: [string, string][]): void {
    const head = h("div", { class: "tooltip-title" }, shown(title, 120));
    const parts: Node[] = [head];
    if (layer !== undefined) {
      const swatch = h("span", { class: "swatch", style: `background: var(${phase_variable(layer.phase)})` });
      parts.push(
        h(
          "div",
          { class: "tooltip-kind" },
          swatch,
          `${shown(layer.op_type, 60)} \u00b7 ${shown(label(layer.phase), 40)}`,
        ),
      );
    }
    const list = h("dl");
    for (const [key, value] of lines) list.append(h("dt", {}, key), h("dd", {}, shown(value, 120)));
    parts.push(list);
    this.element.replaceChildren(...parts);
    this.element.hidden = false;
    const box = this.element.parentElement;
    const room = (box?.clientWidth ?? 0) - this.element.offsetWidth - 8;
    const left = x + 16 > room ? Math.max(x - this.element.offsetWidth - 12, 4) : x + 16;
    this.element.style.left = `${left}px`;
    this.element.style.top = `${y + 16}px`;
  }

  hide(): void {
    this.element.hidden = true;
  }
}
