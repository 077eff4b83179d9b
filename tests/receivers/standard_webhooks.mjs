// What the official JavaScript package makes of deliveries, through the receiver of the guide; and messages that it signs.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
import { receive } from "./receiver.mjs";

const given = JSON.parse(readFileSync(0, "utf8"));
const received = [];
let refused = 0;
for (const { body, headers } of given.deliveries) {
  try {
    await receive(body, headers, async (id) => received.push(id));
  } catch {
    refused += 1;
  }
}
const webhook = new Webhook(process.env.TICKLER_SIGNING_SECRET);
const signatures = given.messages.map(({ id, timestamp_s, body }) => webhook.sign(id, new Date(timestamp_s * 1000), body));
console.log(JSON.stringify({ received, refused, signatures }));
