// Elements. Every text goes through textContent: names out of logs are hostile.

export const byId = (id) => document.getElementById(id);

export function el(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'text') e.textContent = value;
    else if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

// A bar of 100 units: [from, to, class] each. Attributes alone, since the policy forbids styles.
export function bar(...parts) {
  const make = (tag, attributes) => {
    const e = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    return e;
  };
  const svg = make('svg', {
    class: 'bar',
    viewBox: '0 0 100 10',
    preserveAspectRatio: 'none',
    'aria-hidden': 'true',
  });
  svg.append(
    ...parts.map(([from, to, name, y = 0, height = 10]) =>
      make('rect', { x: from, y, width: Math.max(to - from, 0.4), height, class: name })
    )
  );
  return svg;
}

export function replace(where, ...children) {
  where.replaceChildren(...children.filter((c) => c !== null && c !== undefined));
}

export function options(select, list, chosen) {
  replace(
    select,
    ...list.map(([value, text]) => el('option', { value, text, selected: String(value) === String(chosen) }))
  );
}

// What just happened, for those who do not see it.
const live = el('div', { class: 'live', 'aria-live': 'polite', id: 'live' });
document.body.append(live);
export function announce(text) {
  live.textContent = text;
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Not a secure context (a page opened over plain http): the old way.
    const area = el('textarea', { text, 'aria-hidden': 'true' });
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  announce(`Copied: ${text}`);
}

export function download(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv;charset=utf-8' }));
  const a = el('a', { href: url, download: name });
  document.body.append(a);
  a.click();
  a.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
