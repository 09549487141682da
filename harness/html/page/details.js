'use strict';
// The drawer: all that is known of one node, at the side of whatever section it was picked in.

const details = {
  // `step`: the graph that the node is looked at in; by default the last that has it.
  show(model, name, step = null) {
    const found = step && step.byName.has(name) ? step : [...model.steps].reverse().find((one) => one.byName.has(name));
    const node = found ? found.byName.get(name) : null;
    const layers = model.layers.flat().filter((layer) => layer.name === name && name !== '');
    const drawer = document.getElementById('drawer');
    drawer.replaceChildren(
      el('button', { type: 'button', class: 'close', text: '✕', title: 'Close (Esc)', 'aria-label': 'Close', onclick: () => details.hide() }),
      el('h2', {}, path(name)),
      node && el('p', { class: 'muted', text: `in the graph ${found.after === 'input' ? 'as read' : `after ${found.after}`}` }),
      ...details.why(model, node, layers),
      ...details.against(found, name),
      node && details.description(model, found, node),
      ...details.measurements(layers),
      ...details.remarks(model, name, node),
      ...details.presence(model, name),
    );
    drawer.hidden = false;
    drawer.scrollTop = 0;
  },

  hide() {
    document.getElementById('drawer').hidden = true;
  },

  why(model, node, layers) {
    const outside = layers.find((layer) => layer.variant === model.variants[model.main]?.name && ['FP32', 'reference'].includes(layer.place));
    if (!outside) return [];
    const place = outside.place === 'reference' ? 'by reference evaluation' : 'in FP32';
    return [el('div', { class: 'callout' }, el('b', { text: `Runs ${place}, not in INT8. ` }), el('span', { text: visible(outside.why || 'No pass said why.') }))];
  },

  // How it differs from the same graph of the run before.
  against(step, name) {
    const difference = step?.against?.byName.get(name);
    if (!difference) return [];
    const notes = difference.kind === 'renamed' ? [`was called ${visible(difference.before)}`] : difference.changes.map(visible);
    return [el('div', { class: 'callout' }, el('b', { text: `Against the run before: ${difference.kind}.` }), notes.map((note) => el('div', {}, el('code', { text: note }))))];
  },

  link(model, step, name) {
    if (!step.byName.has(name)) return el('span', {}, path(name));
    return el('button', { type: 'button', class: 'link', onclick: () => app.select(name, { step, reveal: true }) }, path(shortened(name, 120)));
  },

  names(model, step, names) {
    if (names.length === 0) return el('span', { class: 'muted', text: 'none' });
    return el('ul', { class: 'plain' }, names.slice(0, 40).map((name) => el('li', {}, details.link(model, step, name))),
              names.length > 40 && el('li', { class: 'muted', text: `and ${names.length - 40} more` }));
  },

  description(model, step, node) {
    const rows = [
      ['computes', el('code', { text: visible(node.target) })],
      ['kind', visible(node.kind)],
      ['gives', el('code', { text: visible(node.type || 'nothing') })],
    ];
    for (const weight of node.weights) rows.push(['weights', el('code', { text: visible(weight) })]);
    rows.push(['inputs', details.names(model, step, node.inputs)], ['users', details.names(model, step, node.users)]);
    if (node.sources.length > 0) rows.push(['made of', details.names(model, model.steps[0], node.sources)]);
    return el('dl', {}, rows.flatMap(([term, text]) => [el('dt', { text: term }), el('dd', {}, text)]));
  },

  measurements(layers) {
    if (layers.length === 0) return [];
    const rows = [
      ['runs in', (l) => l.place], ['kernel', (l) => visible(l.kernel)], ['ms', (l) => ms(l.ms)], ['share', (l) => percent(l.share)],
      ['GMAC/s', (l) => digits(l.gmacs, 1)], ['of the roof', (l) => percent(l.roofShare)], ['SNR, dB', (l) => digits(l.snr, 1)],
      ['moved', (l) => bytes(l.bytes)],
    ];
    return [
      el('h3', { text: 'Measured' }),
      el('div', { class: 'scroll free' }, el('table', {},
        el('tr', {}, el('th'), layers.map((layer) => el('th', { text: shortened(layer.variant, 60) }))),
        rows.map(([title, text]) => el('tr', {}, el('td', { class: 'text muted', text: title }), layers.map((layer) => el('td', { text: text(layer) })))))),
    ];
  },

  remarks(model, name, node) {
    const decisions = model.decisionsOf(name, node ? node.sources : []);
    if (decisions.length === 0) return [];
    return [
      el('h3', { text: 'What passes said' }),
      ...decisions.slice(0, 100).map((decision) => el('div', { class: `remark ${decision.kind}` },
        el('b', { text: `${visible(decision.pass)}, ${decision.kind}` }), el('span', { class: 'muted', text: decision.node === name ? '' : ` of ${shortened(decision.node, 80)}` }),
        el('div', { text: visible(decision.message) }))),
    ];
  },

  presence(model, name) {
    const steps = model.steps.filter((step) => step.byName.has(name));
    if (steps.length === 0) return [];
    return [
      el('h3', { text: 'In the graphs' }),
      el('div', { class: 'steps' }, steps.map((step) => el('button', {
        type: 'button', text: step.after, title: step.byName.get(name).change || 'as before', onclick: () => app.select(name, { step, reveal: true }),
      }))),
    ];
  },
};
