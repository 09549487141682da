'use strict';
// These results against those of another run.

const DIFFERENCES = ['added', 'removed', 'changed', 'renamed'];

class ComparisonView {
  constructor(model, before) {
    this.compared = model.steps.filter((step) => step.against);
    this.graph = [...this.compared].reverse().find((step) => step.against.nodes.length > 0) || null;
    this.nodes = el('div', { id: 'graph-difference', class: 'scroll', tabindex: '0', 'aria-label': 'How the graph differs', hidden: true });
    const count = (kind) => ({ title: kind, value: (step) => step.against.count(kind), text: (step) => step.against.count(kind) || '–' });
    this.table = new SortableTable([
      { title: 'graph after', kind: 'text', value: (step) => (step.after === 'input' ? 'as read' : step.after) }, { title: 'nodes before', value: (step) => step.against.step.nodes.length },
      { title: 'now', value: (step) => step.nodes.length }, ...DIFFERENCES.map(count),
    ], { pick: (step) => this.show(step), key: (step) => step.after, label: 'Graphs compared' });
    this.element = comparisonSection(model, before, this.compared.length > 0 && [
      el('h3', { text: 'Graphs' }), this.table.element, this.nodes,
      el('p', { class: 'muted', text: 'Nodes match by their names, or by what they compute from what; of weights types and scales are compared, not values. The graph below marks the differences where its colour is the run before.' })]);
  }

  start() {
    this.table.show(this.compared);
    if (this.graph) this.show(this.graph);
  }

  show(step) {
    const MOST = 200;
    const { nodes, step: old } = step.against;
    this.table.mark(step.after);
    const line = (one) => {
      const [marker, tone] = { added: ['+', 'applied'], removed: ['−', 'missed'], changed: ['~', 'note'], renamed: ['=', ''] }[one.kind];
      const here = one.kind === 'removed' ? null : step.byName.get(one.now);
      const node = here || old.byName.get(one.before);
      const name = here ? el('button', { type: 'button', class: 'link', text: shortened(one.now, 120), onclick: () => app.select(one.now, { step, reveal: true }) }) : el('span', { text: shortened(one.before, 120) });
      const notes = one.kind === 'renamed' ? [`was called ${shortened(one.before, 120)}`] : one.kind === 'changed' ? one.changes.map((change) => shortened(change, 400)) : [shortened(codeOf(node).join('').trim(), 300)];
      return el('div', { class: `remark ${tone}` }, el('b', { text: `${marker} ${one.kind} ` }), name, notes.map((note) => el('div', {}, el('code', { text: note }))));
    };
    this.nodes.hidden = nodes.length === 0;
    this.nodes.scrollTop = 0;
    this.nodes.replaceChildren(...nodes.slice(0, MOST).map(line), nodes.length > MOST ? el('p', { class: 'muted', text: `and ${nodes.length - MOST} more` }) : '');
  }
}

function comparisonSection(model, before, graphs) {
  const rows = [];
  const add = (what, old, now, format, lessIsBetter) => {
    if (old === null || now === null || !Number.isFinite(old) || !Number.isFinite(now)) return;  // Equal outputs: the SNR is infinite.
    rows.push({ what, old, now, format, change: old === 0 ? 0 : now / old - 1, better: lessIsBetter ? now < old : now > old });
  };
  for (const variant of model.variants) {
    const other = before.variants.find((one) => one.name === variant.name);
    if (!other) continue;
    const name = shortened(variant.name, 60);
    const fixed = (places, unit = '') => (value) => `${digits(value, places)}${unit}`;
    for (const m of variant.measurements) {
      const old = other.measurements.find((one) => one.batch === m.batch && one.threads === m.threads);
      if (!old) continue;
      add(`${name}: median, batch ${m.batch}, ${plural(m.threads, 'thread')}`, old.latency_ms.median, m.latency_ms.median, (value) => `${ms(value)} ms`, true);
    }
    add(`${name}: top-1`, number(other.top1), number(variant.top1), fixed(2, ' %'), false);
    add(`${name}: bits per byte`, number(other.bits_per_byte), number(variant.bits_per_byte), fixed(4), true);
    add(`${name}: SNR of the outputs`, number(other.snr_db), number(variant.snr_db), fixed(1, ' dB'), false);
    add(`${name}: weights`, other.weight_bytes, variant.weight_bytes, bytes, true);
  }
  const layers = [];
  const oldLayers = new Map((before.layers[before.main] || []).filter((layer) => layer.name !== '').map((layer) => [layer.name, layer]));
  for (const layer of model.layers[model.main] || []) {
    const old = oldLayers.get(layer.name);
    if (old) layers.push({ layer, old, gained: layer.ms - old.ms });
  }
  layers.sort((a, b) => Math.abs(b.gained) - Math.abs(a.gained));
  const tone = (row) => (Math.abs(row.change) < 1e-9 ? 'muted' : row.better ? 'good' : 'bad');
  const signed = (share) => `${share >= 0 ? '+' : '−'}${digits(Math.abs(100 * share), 1)} %`;
  const head = (titles) => el('thead', {}, el('tr', {}, titles.map((title) => el('th', { class: ['figure', 'layer', 'kernel'].includes(title) ? 'text' : '', text: title }))));
  return section('comparison', 'Comparison',
    el('p', { class: 'muted', text: `against the run of ${visible(before.results.environment.started)} on ${visible(before.results.environment.cpu)}` }),
    rows.length > 0 && el('div', { class: 'scroll free' }, el('table', { 'aria-label': 'Comparison' }, head(['figure', 'before', 'now', 'change']),
      el('tbody', {}, rows.map((row) => el('tr', {}, el('td', { class: 'text', text: row.what }), el('td', { text: row.format(row.old) }), el('td', { text: row.format(row.now) }), el('td', {}, el('b', { class: tone(row), text: signed(row.change) }))))))),
    ...(graphs || []),
    layers.length > 0 && el('h3', { text: 'Layers that changed most' }),
    layers.length > 0 && el('div', { class: 'scroll' }, el('table', { 'aria-label': 'Layers compared' }, head(['layer', 'before, ms', 'now, ms', 'change, ms', 'kernel']),
      el('tbody', {}, layers.slice(0, 40).map(({ layer, old, gained }) => el('tr', {},
        el('td', { class: 'text' }, el('button', { type: 'button', class: 'link', text: shortened(layer.label, 80), onclick: () => app.select(layer.name, { reveal: false }) })),
        el('td', { text: ms(old.ms) }), el('td', { text: ms(layer.ms) }), el('td', { class: gained > 0 ? 'bad' : 'good', text: `${gained > 0 ? '+' : '−'}${ms(Math.abs(gained))}` }),
        el('td', { class: 'text', text: visible(old.kernel === layer.kernel ? layer.kernel : `${old.kernel} → ${layer.kernel}`) })))))));
}
