// SPDX-License-Identifier: Apache-2.0
// Twilio SMS: one text message. The package twilio, where it is installed, makes the request.
const https = require("https");

const HOST = "api.twilio.com";
let twilio = null;
try { twilio = require("twilio"); } catch { /* the standard library is enough */ }

function post(path, fields, user, password) {
  const body = new URLSearchParams(fields).toString();
  return new Promise((resolve, reject) => {
    const request = https.request({ host: HOST, path, method: "POST", auth: `${user}:${password}`, timeout: 20000,
      headers: { "Content-Type": "application/x-www-form-urlencoded", "Content-Length": Buffer.byteLength(body) } },
      (answer) => {
        let text = "";
        answer.on("data", (part) => { text += part; });
        answer.on("end", () => resolve({ status: answer.statusCode, body: text }));
      });
    request.on("error", reject);
    request.end(body);
  });
}

for (const key of ["to", "from", "body", "account_sid", "auth_token"])
  if (!input?.[key]) return { success: false, error: `${key} is missing` };
try {
  let message;
  if (twilio) {
    message = await twilio(input.account_sid, input.auth_token).messages.create({ to: input.to, from: input.from, body: input.body });
  } else {
    const answer = await post(`/2010-04-01/Accounts/${encodeURIComponent(input.account_sid)}/Messages.json`,
      { To: input.to, From: input.from, Body: input.body }, input.account_sid, input.auth_token);
    if (answer.status >= 400) return { success: false, error: `Twilio answered ${answer.status}: ${answer.body.slice(0, 500)}` };
    message = JSON.parse(answer.body);
  }
  return { success: true, data: { sid: message.sid, status: message.status, to: message.to } };
} catch (why) {
  return { success: false, error: `${HOST} cannot be reached: ${why.message}; the tool needs the grant allowed_hosts: ${HOST}`,
    grant: { allowed_hosts: [HOST] } };
}
