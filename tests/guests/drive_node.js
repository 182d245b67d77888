// SPDX-License-Identifier: Apache-2.0
/* A Node guest without zygote and cell: drive_node.js SOURCES ADDON CONTROL_FD. */
'use strict';

const [sources, addon, control] = process.argv.slice(2);
const { Guest, openStreams } = require(`${sources}/guest.js`);

openStreams();
new Guest(Number(control), require(addon)).attach().serve();
