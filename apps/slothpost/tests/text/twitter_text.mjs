// What the official JavaScript package makes of texts: the list of cases comes in, and goes out with what it counts.
import { readFileSync } from "node:fs";
import twitter from "twitter-text";

const cases = JSON.parse(readFileSync(0, "utf8")).map(({ text }) => {
  const { weightedLength, valid } = twitter.parseTweet(text);
  return { text, length: weightedLength, valid, links: twitter.extractUrls(text.normalize()) };
});
// In ASCII, one case a line: other characters look alike, and some cannot be seen.
const escaped = (each) => JSON.stringify(each).replace(/[^ -~]/g, (unit) => "\\u" + unit.charCodeAt(0).toString(16).padStart(4, "0"));
process.stdout.write(`[\n${cases.map((each) => "  " + escaped(each)).join(",\n")}\n]\n`);
