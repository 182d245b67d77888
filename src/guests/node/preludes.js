// SPDX-License-Identifier: Apache-2.0
/*
 * preludes.js - a prelude: a CommonJS module of the code's own, loaded before the code runs; what
 * it exports is a variable of its name.
 */
'use strict';

const vm = require('node:vm');
const { Module, stripTypeScriptTypes } = require('node:module');

const PARAMETERS = ['exports', 'require', 'module', '__filename', '__dirname'];

/** The name `handler` of "handler.js", and what the module exports. */
function load({ name, code }, folder, require) {
  const path = `${folder}/${name}`;
  const module = new Module(path);
  const source = name.endsWith('.ts') ? stripTypeScriptTypes(code, { mode: 'transform' }) : code;
  const body = vm.compileFunction(source, PARAMETERS, {
    filename: name,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  body.call(module.exports, module.exports, require, module, path, folder);
  return { [name.replace(/\.[^.]*$/, '')]: module.exports };
}

module.exports = { load };
