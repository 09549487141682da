'use strict';
// Where the nodes of a graph go: layers from top to bottom, by dagre.
//
// A network narrows again and again to a single value (a block's end). Between two such places its nodes depend on no
// others, so each stretch is laid out alone, and hung below the one before: linear time in the number of stretches, where
// dagre needs far more than linear time for the whole.

const NODE_WIDTH = 216;
const NODE_HEIGHT = 44;
const FAR = 120;               // A value that is read over more nodes than this moves nothing there: it is drawn dashed.
const NEAR = 8;                // But what reads such a value this soon is placed by it.
const LARGEST_STRETCH = 400;   // Nodes; a longer stretch gets plain rows.
const LARGEST_SPAN = 100;      // Nodes that all edges of a stretch pass together; beyond it the longest are left to themselves.

// Nodes that are drawn: constants are their users' business.
function drawnNodes(step) {
  return step.nodes.filter((node) => node.kind !== 'get_attr');
}

// [{from, to, far}] by indices into `nodes`, each pair once.
function edgesOf(nodes) {
  const index = new Map(nodes.map((node, i) => [node.name, i]));
  const edges = [];
  const lastUse = nodes.map((_, i) => i);
  nodes.forEach((node, to) => {
    for (const input of new Set(node.inputs)) {
      const from = index.get(input);
      if (from === undefined || from >= to) continue;
      edges.push({ from, to });
      lastUse[from] = to;
    }
  });
  for (const edge of edges) edge.far = lastUse[edge.from] - edge.from > FAR && edge.to - edge.from > NEAR;
  return edges;
}

// The last node of each stretch: after it, only its own value is still to be read.
function stretchEnds(nodes, edges) {
  const lastUse = nodes.map((_, i) => i);
  for (const edge of edges) if (!edge.far) lastUse[edge.from] = Math.max(lastUse[edge.from], edge.to);
  const ends = [];
  let reach = 0;  // The farthest use of a value made before node i.
  nodes.forEach((_, i) => {
    if (reach <= i) ends.push(i);
    reach = Math.max(reach, lastUse[i]);
  });
  if (ends[ends.length - 1] !== nodes.length - 1) ends.push(nodes.length - 1);
  return ends;
}

// Places of nodes first..last, where `first` ends the stretch before and is placed already (-1: none is). `inner` are the
// edges among them. Networks repeat themselves, so each shape of a stretch is laid out once: `known` keeps what was.
function placeStretch(first, last, inner, known) {
  const start = Math.max(first, 0);
  const shape = `${first < 0} ${last - start}: ${inner.map((edge) => `${edge.from - start}-${edge.to - start}`).join(' ')}`;
  if (!known.has(shape)) known.set(shape, laidOutByDagre(first < 0, last - start, inner.map((edge) => [edge.from - start, edge.to - start])));
  const graph = known.get(shape);
  return {
    node: (i) => graph.node(String(i - start)),
    points: (edge) => graph.edge(String(edge.from - start), String(edge.to - start)).points,
  };
}

// Nodes 0..last, of which the first is there already unless `isFirst`.
function laidOutByDagre(isFirst, last, edges) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 26, ranksep: 30, edgesep: 14, ranker: last > 60 ? 'longest-path' : 'network-simplex' });
  graph.setDefaultEdgeLabel(() => ({}));
  const fed = new Set(edges.map(([, to]) => to));
  for (let i = 0; i <= last; ++i) graph.setNode(String(i), { width: NODE_WIDTH, height: NODE_HEIGHT });
  for (const [from, to] of edges) graph.setEdge(String(from), String(to));
  // Whatever nothing here feeds comes below the start.
  if (!isFirst) for (let i = 1; i <= last; ++i) if (!fed.has(i)) graph.setEdge('0', String(i), { weight: 0 });
  dagre.layout(graph);
  return graph;
}

// Rows by depth, as wide as they come: for a stretch that dagre would take minutes over.
function placeRows(first, last, inner) {
  const start = Math.max(first, 0);
  const depth = new Map();
  for (let i = start; i <= last; ++i) depth.set(i, i === start ? 0 : 1);
  for (const edge of inner) depth.set(edge.to, Math.max(depth.get(edge.to), depth.get(edge.from) + 1));
  const rows = [];
  for (const [i, row] of depth) (rows[row] = rows[row] || []).push(i);
  const places = new Map();
  rows.forEach((row, y) => row.forEach((i, column) => {
    places.set(i, { x: (column - (row.length - 1) / 2) * (NODE_WIDTH + 26), y: y * (NODE_HEIGHT + 34) });
  }));
  return {
    node: (i) => places.get(i),
    points: ({ from, to }) => [places.get(from), places.get(to)],
  };
}

function belowOf({ x, y }) {
  return { x, y: y + NODE_HEIGHT / 2 };
}

// Marks the longest edges of a stretch as far, until dagre has time for the others.
function dropLongest(edges) {
  const span = (edge) => edge.to - edge.from;
  let total = d3.sum(edges, span);
  for (const edge of [...edges].sort((a, b) => span(b) - span(a))) {
    if (total <= LARGEST_SPAN || span(edge) === 1) return;
    edge.far = true;
    total -= span(edge);
  }
}

// Calls stretch(first, last, edges) for each, with the edges that end in it. `first` ends the stretch before; -1: none is.
function forStretches(nodes, edges, stretch) {
  const incoming = nodes.map(() => []);
  for (const edge of edges) if (!edge.far) incoming[edge.to].push(edge);
  let first = -1;
  for (const last of stretchEnds(nodes, edges)) {
    stretch(first, last, incoming.slice(first + 1, last + 1).flat().filter((edge) => edge.from >= first));
    first = last;
  }
}

// {nodes: [{node, x, y}], edges: [{from, to, far, points}], bounds}: centres of boxes, in pixels at scale 1.
function layOut(step) {
  const nodes = drawnNodes(step);
  const edges = edgesOf(nodes);
  const placed = nodes.map((node) => ({ node, x: 0, y: 0 }));
  // Without its longest edges a stretch (of a dense block) falls into several.
  forStretches(nodes, edges, (first, last, inner) => dropLongest(inner));
  const known = new Map();
  let bottom = 0;
  forStretches(nodes, edges, (first, last, inner) => {
    const start = Math.max(first, 0);
    // dagre is for what branches.
    const plain = last - start === 1 || last - start > LARGEST_STRETCH;
    const place = (plain ? placeRows : placeStretch)(first, last, inner, known);
    // Each stretch ends below the end of the one before, so that the whole does not drift to a side.
    const dx = -place.node(last).x;
    const dy = first >= 0 ? placed[first].y - place.node(first).y : 0;
    for (let i = first + 1; i <= last; ++i) {
      placed[i].x = place.node(i).x + dx;
      placed[i].y = place.node(i).y + dy;
      bottom = Math.max(bottom, placed[i].y);
    }
    for (const edge of inner) {
      edge.points = place.points(edge).map((point) => ({ x: point.x + dx, y: point.y + dy }));
      if (edge.from === first) edge.points[0] = belowOf(placed[first]);
    }
  });
  for (const edge of edges) {
    if (edge.points) continue;
    edge.far = true;
    edge.points = [belowOf(placed[edge.from]), { x: placed[edge.to].x, y: placed[edge.to].y - NODE_HEIGHT / 2 }];
  }
  const [left, right] = d3.extent(placed, (one) => one.x);
  const [top] = d3.extent(placed, (one) => one.y);
  return { nodes: placed, edges, bounds: { left: (left || 0) - NODE_WIDTH / 2, right: (right || 0) + NODE_WIDTH / 2, top: (top || 0) - NODE_HEIGHT / 2, bottom: bottom + NODE_HEIGHT / 2 } };
}
