// Elements made from data. Text always goes through text nodes, never through markup.

type Attributes = Record<string, string | number | boolean>;
export type Child = Node | string | null;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set_attributes(element, attributes);
  append(element, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set_attributes(element, attributes);
  append(element, children);
  return element;
}

function set_attributes(element: Element, attributes: Attributes): void {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false) continue;
    element.setAttribute(key, value === true ? "" : String(value));
  }
}

function append(element: Element, children: Child[]): void {
  for (const child of children) if (child !== null) element.append(child);
}

/// A name as it may be shown: control and direction-changing characters become visible, long names are cut.
export function shown(name: string, longest = 200): string {
  const clean = name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, "\ufffd");
  return clean.length > longest ? clean.slice(0, longest - 1) + "\u2026" : clean;
}
