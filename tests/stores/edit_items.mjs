// Edits items of a table with AWS's own client for JavaScript until its input ends; then prints how often each was edited.
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, UpdateCommand } from "@aws-sdk/lib-dynamodb";

const [endpoint, region, table, number] = process.argv.slice(2);
const client = DynamoDBDocumentClient.from(new DynamoDBClient({ endpoint, region }));
const edits = {};
let ended = false;
process.stdin.resume();
process.stdin.on("end", () => (ended = true));

async function edit(productId) {
  await client.send(
    new UpdateCommand({
      TableName: table,
      Key: { productId },
      UpdateExpression: "SET title = :title, tags = :tags ADD edits :one",
      ExpressionAttributeValues: { ":title": `edited 🦥 ${Math.random()}`, ":tags": [1.5, null, { a: "b" }], ":one": 1 },
    }),
  );
  edits[productId] = (edits[productId] ?? 0) + 1;
}

async function keepEditing() {
  while (!ended) await edit(`p${String(Math.floor(Math.random() * Number(number))).padStart(3, "0")}`);
}

await edit("p000");
console.log("editing");
await Promise.all(Array.from({ length: 8 }, keepEditing));
console.log(JSON.stringify(edits));
