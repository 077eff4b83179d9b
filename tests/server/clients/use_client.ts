// Uses the types that openapi-typescript has generated beside it; prints a line an answer.
import createClient from "openapi-fetch";
import type { paths } from "./tickler.js";

const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url, headers: { authorization: `Bearer ${token}` } });
const path = { owner: "u1", key: "k/1" };

const put = await client.PUT("/v1/schedules/{owner}/{key}", {
  params: { path, header: { "if-none-match": "*" } },
  body: { when: "0 9 * * *", target: "https://example.org/hook", policy: { attempts: 3 } },
});
console.log(put.response.status);
const got = await client.GET("/v1/schedules/{owner}/{key}", { params: { path } });
console.log(got.data?.when);
console.log(got.data?.policy?.attempts);
const listed = await client.GET("/v1/schedules", { params: { query: { owner: "u1", limit: 10 } } });
console.log(listed.data?.items.map((each) => each.key).join(" "));
const why = await client.GET("/v1/schedules/{owner}/{key}/why", { params: { path } });
console.log(why.data?.sentence);
const patched = await client.PATCH("/v1/schedules/{owner}/{key}", { params: { path }, body: { when: "0 10 * * *" } });
console.log(patched.data?.when);
console.log(patched.data?.policy?.attempts);
const gone = await client.DELETE("/v1/schedules/{owner}/{key}", { params: { path, header: { "if-match": "*" } } });
console.log(gone.response.status);
console.log((await client.GET("/v1/schedules/{owner}/{key}", { params: { path } })).response.status);
