'use strict';
// Passes: what each changed, and every decision with its reason.

class PassesView {
  constructor(model) {
    this.model = model;
    this.kind = 'all';
    this.open = new Set();
    this.search = el('input', { type: 'search', placeholder: 'Search nodes and reasons', 'aria-label': 'Search the decisions', id: 'decision-search', oninput: () => this.draw() });
    this.list = el('tbody');
    this.element = section('passes', 'Passes',
      el('div', { class: 'row' }, choice([['all', 'all'], ['applied', 'applied'], ['missed', 'missed'], ['note', 'notes']], 'all', (value) => { this.kind = value; this.draw(); }, 'Decisions'), this.search),
      el('div', { class: 'scroll free' }, el('table', { 'aria-label': 'Passes' },
        el('thead', {}, el('tr', {}, ['pass', 'nodes', 'matches', 'time, ms', 'outputs against before', 'decisions'].map((title, i) => el('th', { class: i === 0 || i === 5 ? 'text' : '', text: title })))), this.list)));
  }

  start() {
    this.draw();
  }

  decisions(pass) {
    const text = this.search.value.trim().toLowerCase();
    return (pass.decisions || []).filter((d) => (this.kind === 'all' || d.kind === this.kind) && `${d.node} ${d.message}`.toLowerCase().includes(text));
  }

  draw() {
    const searching = this.search.value.trim() !== '' || this.kind !== 'all';
    this.list.replaceChildren(...this.model.passes.flatMap((pass, i) => {
      const found = this.decisions(pass);
      const open = searching ? found.length > 0 : this.open.has(i);
      const toggle = () => {
        if (this.open.has(i)) this.open.delete(i);
        else this.open.add(i);
        this.draw();
      };
      const snr = number(pass.snr_db);
      const error = number(pass.max_abs_error);
      const against = error === null && snr === null ? 'not checked' : error === 0 || snr === Infinity ? 'the same bits' : snr !== null ? `SNR ${digits(snr, 0)} dB` : `within ${error.toExponential(1)}`;
      const button = el('button', { type: 'button', class: 'link', 'aria-expanded': String(open), text: `${open ? '▾' : '▸'} ${visible(pass.name)}`, onclick: toggle });
      const kinds = ['applied', 'missed', 'note'].map((kind) => [kind, (pass.decisions || []).filter((d) => d.kind === kind).length]).filter(([, count]) => count > 0);
      const row = el('tr', {}, el('td', { class: 'text' }, button, !pass.changed && el('span', { class: 'muted', text: '  nothing to do' })),
        el('td', { text: pass.nodes_before === pass.nodes_after ? pass.nodes_after : `${pass.nodes_before} → ${pass.nodes_after}` }), el('td', { text: pass.matches }), el('td', { text: ms(pass.wall_ms) }),
        el('td', { text: against }), el('td', { class: 'text', text: kinds.map(([kind, count]) => `${count} ${kind === 'note' && count > 1 ? 'notes' : kind}`).join(', ') }));
      return open ? [row, el('tr', {}, el('td', { class: 'text wrap', colspan: 6 }, this.groups(found)))] : [row];
    }));
  }

  // Decisions with the same words stand together.
  groups(decisions) {
    const groups = new Map();
    for (const decision of decisions) {
      const key = `${decision.kind}\u0000${decision.message}`;
      if (!groups.has(key)) groups.set(key, { ...decision, nodes: [] });
      if (decision.node !== '') groups.get(key).nodes.push(decision.node);
    }
    if (groups.size === 0) return el('span', { class: 'muted', text: 'Nothing was said.' });
    const shown = [...groups.values()];
    return el('div', {}, shown.slice(0, 200).map(({ kind, message, nodes }) => el('div', { class: `remark ${kind}` }, el('b', { text: `${kind}: ` }), visible(message),
      nodes.length > 0 && el('div', {}, nodes.slice(0, 60).flatMap((node, i) => [i > 0 ? ' · ' : '',
        el('button', { type: 'button', class: 'link', text: shortened(node, 90), onclick: () => app.select(node, { reveal: false }) })]),
      nodes.length > 60 && el('span', { class: 'muted', text: ` · and ${nodes.length - 60} more` })))),
      shown.length > 200 && el('p', { class: 'muted', text: `and ${shown.length - 200} more; search narrows them down` }));
  }
}

// Where each op runs, as the command explain found it, without a measurement.
class ExplanationView {
  constructor(explanation) {
    this.rows = explanation.placements;
    this.places = ['INT8', 'FP32', 'reference', 'crossing', 'layout'].filter((place) => this.rows.some((row) => row.runs_in === place));
    this.place = 'all';
    this.search = el('input', { type: 'search', placeholder: 'Search ops and reasons', 'aria-label': 'Search the ops', oninput: () => this.draw() });
    const place = (row) => {
      const dot = el('span', { class: 'dot' });
      dot.style.background = css(PLACE_COLORS[row.runs_in]);
      return el('span', {}, dot, row.runs_in);
    };
    const text = (title, field, more = {}) => ({ title, kind: 'text', value: (row) => row[field], cell: (row) => el('span', { class: 'clamp', text: visible(row[field]) }), ...more });
    this.table = new SortableTable([
      text('node', 'node', { class: 'name' }), text('op', 'op'), text('runs in', 'runs_in', { cell: place }), text('why not INT8', 'why', { class: 'why' }), text('kernel', 'kernel'),
      text('layout', 'layout'), { title: 'bytes', value: (row) => row.bytes, text: (row) => bytes(row.bytes) }, text('crossing', 'crossing'),
      { title: 'crossing bytes', value: (row) => row.crossing_bytes, text: (row) => bytes(row.crossing_bytes) },
    ], { pick: (row) => row.node && app.select(row.node), key: (row) => row.node, label: 'Where ops run' });
    const share = explanation.bytes > 0 ? ` Of ${bytes(explanation.bytes)} that a run moves, ${bytes(explanation.crossing_bytes)} are for crossing between INT8 and float.` : '';
    this.element = section('explanation', 'Where ops run',
      el('p', { text: `${explanation.int8_ops} of ${plural(explanation.ops, 'op')} in INT8, ${explanation.fp32_ops} in FP32, ${explanation.reference_ops} by reference evaluation.${share}` }),
      el('div', { class: 'row' }, choice([['all', 'all'], ...this.places.map((name) => [name, name])], 'all', (value) => { this.place = value; this.draw(); }, 'Runs in'), this.search),
      this.table.element);
  }

  start() {
    this.draw();
  }

  draw() {
    const text = this.search.value.trim().toLowerCase();
    this.table.show(this.rows.filter((row) => (this.place === 'all' || row.runs_in === this.place) && [row.node, row.op, row.kernel, row.why].some((part) => part.toLowerCase().includes(text))));
  }
}
