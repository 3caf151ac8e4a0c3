// Remote control of a session from JavaScript (Node.js 22 or a browser): node control_client.mjs HOST:PORT TOKEN
// Start the session with: haptics run --device virtual-joystick --headless --control websocket
// A web page needs: --allow-origin with the origin of the page.

const [address, token] = process.argv.slice(2);
const socket = new WebSocket(`ws://${address}/?token=${encodeURIComponent(token)}`);
const waiting = new Map();
let count = 0;

function request(verb, fields = {}) {
  const id = ++count;
  socket.send(JSON.stringify({ id, verb, ...fields }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

socket.onmessage = ({ data }) => {
  const reply = JSON.parse(data);
  const promise = waiting.get(reply.id);
  if (!promise) return; // rows of a subscription
  waiting.delete(reply.id);
  if (reply.ok) promise.resolve(reply.result);
  else promise.reject(new Error(reply.error));
};

await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
console.log("device:", (await request("status")).device);
const { tick } = await request("configure", { law: { name: "coulomb", force: 4.0 }, gate: true });
await request("mark", { marker: 1 });
await request("wait", { seconds: 1.0 });
const force = await request("since", { tick, columns: ["friction_force_x_n"] });
console.log(`from tick ${tick} on up to ${Math.max(...force.friction_force_x_n.map(Math.abs))} N along x`);
await request("stop");
socket.close();
