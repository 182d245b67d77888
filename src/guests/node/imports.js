// SPDX-License-Identifier: Apache-2.0
/*
 * imports.js - allowed_imports: which modules the user's code may load.
 *
 * A guard rail, not a wall: it tells a model early, and with the line, that its plan does not fit
 * the policy. The wall is the cell. Files beside the script (./x.js) are always allowed.
 */
'use strict';

class Guard {
  constructor(allowed) {
    this.allowed = allowed.map((name) => String(name).replace(/^node:/, ''));
  }

  allows(name) {
    const plain = name.replace(/^node:/, '');
    return (
      /^\.{0,2}\//.test(plain) ||
      this.allowed.some((one) => plain === one || plain.startsWith(`${one}/`))
    );
  }

  refusal(name, place) {
    const error = new Error(
      `import of '${name}' is not allowed by this policy; allowed: ` +
        `${this.allowed.join(', ') || 'none'}; add it with allowed_imports`,
    );
    error.name = 'ImportError';
    return Object.assign(error, { retortModule: name, retortPlace: place });
  }

  /** For compile(): looks at what the code will load before anything of it runs. */
  check(tree, walk, locate) {
    const refuse = (node, name) => {
      const before = placeOf(node);
      throw this.refusal(name, locate ? locate(before.line, before.column) : before);
    };
    const look = (node, source) => {
      if (!source) return;
      if (typeof source.value !== 'string') refuse(node, 'a name made at run time');
      if (!this.allows(source.value)) refuse(node, source.value);
    };
    const declaration = (node) => look(node, node.source);
    walk.simple(tree, {
      ImportDeclaration: declaration,
      ExportNamedDeclaration: declaration,
      ExportAllDeclaration: declaration,
      ImportExpression: declaration,
      CallExpression(node) {
        if (node.callee.name === 'require' && typeof node.arguments[0]?.value === 'string')
          look(node, node.arguments[0]);
      },
    });
  }

  /** A require() that asks first. */
  wrap(require) {
    const guarded = (name) => {
      if (typeof name === 'string' && !this.allows(name)) throw this.refusal(name);
      return require(name);
    };
    return Object.assign(guarded, { resolve: require.resolve, cache: require.cache });
  }
}

function placeOf(node) {
  return node.loc ? { line: node.loc.start.line, column: node.loc.start.column + 1 } : {};
}

module.exports = { Guard };
