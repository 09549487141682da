'use strict';
// What the page knows: results.json, and what follows from it.

// Where a step runs, in the order of legends.
const PLACES = ['INT8', 'FP32', 'crossing', 'reference', 'layout'];
const PLACE_COLORS = { INT8: '--int8', FP32: '--fp32', crossing: '--crossing', reference: '--reference', layout: '--layout' };
const PLACE_HELP = {
  crossing: 'a change between INT8 codes and floats',
  reference: 'no kernel: the reference evaluation runs it',
  layout: 'a change of layout that the runtime inserted',
};

function placeOf(op, kernel, name) {
  if (name === '' || op === 'reorder' || op === 'copy') return 'layout';
  if (kernel === 'reference') return 'reference';
  if (op.includes('quantize')) return 'crossing';
  return op.startsWith('int8.') ? 'INT8' : 'FP32';
}

class Model {
  constructor(results) {
    this.results = results;
    this.status = results.status || 'INCOMPLETE';
    this.variants = results.variants || [];
    this.peers = results.peers || [];
    this.passes = results.passes || [];
    this.peaks = (results.environment || {}).peaks || null;
    this.readSteps(results.history || {});
    this.readDecisions();
    this.layers = this.variants.map((variant) => this.readLayers(variant));
    this.matchBaseline();
  }

  // The network after each pass: steps of nodes, each with its users and what changed.
  readSteps(history) {
    const nodes = history.nodes || [];
    this.steps = (history.steps || []).map((step) => {
      const list = step.nodes.map((index, position) => ({ ...nodes[index], index, position, users: [], change: '' }));
      const byName = new Map(list.map((node) => [node.name, node]));
      for (const node of list) {
        for (const input of new Set(node.inputs)) byName.get(input)?.users.push(node.name);
      }
      return { after: step.after, nodes: list, byName, removed: [] };
    });
    for (let i = 1; i < this.steps.length; ++i) {
      const [before, after] = [this.steps[i - 1], this.steps[i]];
      for (const node of after.nodes) {
        const old = before.byName.get(node.name);
        node.change = old === undefined ? 'new' : old.index !== node.index ? 'changed' : '';
      }
      after.removed = before.nodes.filter((node) => !after.byName.has(node.name)).map((node) => node.name);
    }
  }

  // `differences`: what harness diff found between graphs of the run `before` and ours.
  compareGraphs(before, differences) {
    for (const { before: old, now, nodes } of differences) {
      const kindOf = (one) => (one.before === '' ? 'added' : one.now === '' ? 'removed' : one.changes.length > 0 ? 'changed' : 'renamed');
      const found = nodes.map((one) => ({ ...one, kind: kindOf(one) }));
      const byName = new Map(found.filter((one) => one.now !== '').map((one) => [one.now, one]));
      this.steps[now].against = { step: before.steps[old], nodes: found, byName, count: (kind) => found.filter((one) => one.kind === kind).length };
    }
  }

  // Node of any graph -> what passes said of it.
  readDecisions() {
    this.decisions = new Map();
    for (const pass of this.passes) {
      for (const decision of pass.decisions || []) {
        if (decision.node === '') continue;
        if (!this.decisions.has(decision.node)) this.decisions.set(decision.node, []);
        this.decisions.get(decision.node).push({ ...decision, pass: pass.name });
      }
    }
  }

  // What passes said of a node, or of those that it was made of.
  decisionsOf(name, sources) {
    return [name, ...sources.filter((source) => source !== name)].flatMap((each) => this.decisions.get(each) || []);
  }

  // The reasons that passes gave for leaving the node, or one that it came from, alone.
  whyNot(name, sources) {
    const reasons = (each) => (this.decisions.get(each) || []).filter((decision) => decision.kind === 'missed').map((decision) => `${decision.pass}: ${decision.message}`);
    const first = [name, ...sources].map(reasons).find((list) => list.length > 0) || [];
    return [...new Set(first)].join('; ');
  }

  stepOf(variant) {
    if (variant.after) {
      // A pass that changed nothing left no graph of its own: the last one before it is the same.
      const order = ['input', ...this.passes.map((pass) => pass.name)];
      const until = order.indexOf(variant.after);
      const fitting = this.steps.filter((step) => order.indexOf(step.after) <= until);
      if (fitting.length > 0) return fitting[fitting.length - 1];
    }
    return this.steps[this.steps.length - 1];
  }

  readLayers(variant) {
    const step = this.stepOf(variant);
    const total = d3.sum(variant.layers || [], (layer) => layer.ms);
    return (variant.layers || []).map((layer, index) => {
      const node = step && step.byName.get(layer.name);
      const place = placeOf(layer.op, layer.variant, layer.name);
      const sources = node ? node.sources : [];
      const one = {
        index, variant: variant.name, name: layer.name, op: layer.op, kernel: layer.variant, ms: layer.ms, node, place, sources,
        key: `${variant.name}\u0000${index}`, share: total > 0 ? layer.ms / total : null, snr: number(layer.snr_db), macs: layer.macs,
        gmacs: layer.macs > 0 && layer.ms > 0 ? layer.macs / layer.ms / 1e6 : null, bytes: layer.bytes,
        quantization: layer.quantization || null, operations: number(layer.operations), intensity: number(layer.operations_per_byte),
        why: place === 'FP32' || place === 'reference' ? this.whyNot(layer.name, sources) : '',
      };
      one.label = layer.name === '' ? layer.op : layer.name;
      one.roofMs = this.roofMs(one);
      one.roofShare = one.roofMs !== null && one.ms > 0 ? one.roofMs / one.ms : null;
      return one;
    });
  }

  // What the roofline allows on one thread, ms.
  roofMs(layer) {
    if (!this.peaks || layer.operations === null || layer.name === '') return null;
    const peak = layer.place === 'INT8' ? this.peaks.int8_ops_per_second : this.peaks.f32_flops_per_second;
    const moved = layer.intensity > 0 ? layer.operations / layer.intensity : layer.bytes;
    return 1e3 * Math.max(layer.operations / peak, moved / this.peaks.bytes_per_second, this.peaks.seconds_per_call);
  }

  // For each layer of another variant, what the baseline took for the same nodes of the network as read.
  matchBaseline() {
    this.layers.slice(1).forEach((layers) => {
      const bySource = new Map();
      for (const layer of layers) {
        if (layer.place === 'crossing' || layer.place === 'layout') continue;
        for (const source of [layer.name, ...layer.sources]) if (!bySource.has(source)) bySource.set(source, layer);
      }
      for (const base of this.layers[0]) {
        const owner = [base.name, ...base.sources].map((source) => bySource.get(source)).find(Boolean);
        if (owner && base.name !== '') owner.baselineMs = (owner.baselineMs || 0) + base.ms;
      }
    });
  }

  // The variant that the page is about: the last with layers, or the last.
  get main() {
    const measured = this.layers.map((layers, i) => (layers.length > 0 ? i : -1)).filter((i) => i >= 0);
    return measured.length > 0 ? measured[measured.length - 1] : this.variants.length - 1;
  }

  // The layer of a variant in which a node of any graph ended up; undefined: none.
  layerFinder(variantIndex) {
    const layers = this.layers[variantIndex] || [];
    const own = new Map();
    const bySource = new Map();
    for (const layer of layers) {
      if (layer.name === '') continue;
      own.set(layer.name, layer);
      if (layer.place === 'crossing') continue;
      for (const source of layer.sources) {
        const other = bySource.get(source);
        if (!other || other.ms < layer.ms) bySource.set(source, layer);
      }
    }
    const step = this.variants[variantIndex] && this.stepOf(this.variants[variantIndex]);
    return (node) => {
      if (own.has(node.name)) return own.get(node.name);
      // A view, which costs nothing; or a conversion, which became part of a layer.
      if ((step && step.byName.has(node.name)) || node.op.includes('quantize')) return undefined;
      return [node.name, ...node.sources].map((source) => bySource.get(source)).find(Boolean);
    };
  }
}

// "fc1 = linear(out_features=3)" and inputs as a line of Python, after torch.fx.
function codeOf(node) {
  const identifier = (name) => (/^[A-Za-z_]\w*$/.test(name) ? name : `_${visible(name).replace(/\W+/g, '_').replace(/^_+/, '')}`);
  const inputs = node.inputs.map((input) => (input === 'none' ? 'None' : identifier(input)));
  const type = node.type ? `  # ${node.type}` : '';
  if (node.kind === 'placeholder') return [`def forward(${identifier(node.name)}):`, type];
  if (node.kind === 'output') return [`    return ${inputs.join(', ')}`, ''];
  if (node.kind === 'get_attr') return [`    ${identifier(node.name)} = self.${visible(node.target)}`, type];
  const computes = node.target.includes(' = ') ? node.target.slice(node.target.indexOf(' = ') + 3) : node.target;
  const attributes = computes.includes('(') ? computes.slice(computes.indexOf('(') + 1, -1) : '';
  const called = node.kind === 'call_module' ? `self.${visible(node.target.split(' = ')[0])}` : node.op;
  const result = `    ${identifier(node.name)} = ${called}(${[...inputs, node.kind === 'call_module' ? '' : visible(attributes)].filter(Boolean).join(', ')})`;
  return [result, node.kind === 'call_module' ? `  # ${visible(computes)}${node.type ? `: ${node.type}` : ''}` : type];
}
