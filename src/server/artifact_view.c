/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_view.c - walks through an artifact's bytes and tells of the parts asked for. */
#include "server/artifact_view.h"

#include <string.h>

#include "server/json_path.h"

#define PIECE (256u << 10)

/* ---- lines ---- */

typedef struct line_reader {
    uint64_t line, first, last; /* the line we are in; those wanted */
    uint64_t offset;            /* in the artifact */
    rt_buf text;
    size_t line_at; /* where in it this line begins */
    bool is_full, is_cut;
} line_reader;

/* False: no more fits. A line is shown whole or not at all, unless it is the first. */
static bool add_part(line_reader *l, rt_str part)
{
    size_t room = VIEW_TEXT_MAX - l->text.len;
    l->is_full = part.len > room;
    l->is_cut = l->is_full && l->line == l->first;
    if (l->is_full && !l->is_cut)
        l->text.len = l->line_at;
    else
        rt_buf_add(&l->text, rt_str_slice(part, 0, RT_MIN(part.len, room)));
    return !l->is_full;
}

/* False: there is enough. */
static bool read_lines(line_reader *l, rt_str piece)
{
    while (piece.len > 0 && l->line <= l->last) {
        const char *end = memchr(piece.ptr, '\n', piece.len);
        size_t len = end ? (size_t)(end - piece.ptr) + 1 : piece.len;
        if (l->line >= l->first && !add_part(l, rt_str_slice(piece, 0, len)))
            return false;
        l->offset += len;
        piece = rt_str_slice(piece, len, piece.len);
        if (end) {
            l->line++;
            l->line_at = l->text.len;
        }
    }
    return l->line <= l->last;
}

static void write_lines(const view *v, const line_reader *l, rt_json_writer *w)
{
    bool is_more = l->is_full ? !l->is_cut : l->line > l->last && l->offset < v->row->size;
    rt_jw_object(w);
    rt_jw_kstr(w, "artifact_id", v->row->id);
    rt_jw_ku64(w, "line", l->first);
    rt_jw_kstr(w, "text", rt_buf_str(&l->text));
    rt_jw_kbool(w, "truncated", l->is_cut);
    if (is_more)
        rt_jw_ku64(w, "next_line", l->line);
    else
        rt_jw_knull(w, "next_line");
    rt_jw_end(w);
}

bool view_lines(const view *v, uint64_t line, uint64_t lines, rt_json_writer *w, rt_error *err)
{
    rt_arena pieces RT_CLEANUP(rt_arena_done) = { 0 };
    line_reader l = { .line = 1, .first = line, .last = line + lines - 1 };
    rt_str piece;
    bool ok = true, is_wanted = true;
    rt_buf_init(&l.text, VIEW_TEXT_MAX + 1);
    for (uint64_t at = 0; at < v->row->size && is_wanted; at += piece.len) {
        rt_arena_reset(&pieces);
        ok = rt_artifact_read(v->shelf, v->row, at, PIECE, &pieces, &piece, err);
        if (!ok || piece.len == 0)
            break;
        is_wanted = read_lines(&l, piece);
    }
    if (ok)
        write_lines(v, &l, w);
    rt_buf_done(&l.text);
    return ok;
}

/* ---- search ---- */

typedef struct search {
    const view *v;
    rt_str needle; /* in small letters when case is ignored */
    bool is_case_ignored;
    uint64_t from,
        counted; /* matches before `from` are passed over; lines are counted up to here */
    uint64_t line, line_start;
    uint64_t found, max, next; /* next: where the first match too many is */
    rt_json_writer *w;
} search;

static void to_small(char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] |= 0x20;
}

static void count_lines(search *s, rt_str piece, uint64_t piece_at, uint64_t up_to)
{
    while (s->counted < up_to) {
        size_t i = (size_t)(s->counted - piece_at);
        const char *end = memchr(piece.ptr + i, '\n', (size_t)(up_to - s->counted));
        if (!end) {
            s->counted = up_to;
            return;
        }
        s->counted = piece_at + (size_t)(end - piece.ptr) + 1;
        s->line++;
        s->line_start = s->counted;
    }
}

/* The match's line, or what stands around it in a long one. */
static bool write_match(search *s, uint64_t at, rt_error *err)
{
    rt_arena arena RT_CLEANUP(rt_arena_done) = { 0 };
    uint64_t from = at - RT_MIN(at - s->line_start, (uint64_t)VIEW_EXCERPT);
    rt_str text;
    if (!rt_artifact_read(s->v->shelf, s->v->row, from,
                          (size_t)(at - from) + s->needle.len + VIEW_EXCERPT, &arena, &text, err))
        return false;
    size_t behind = RT_MIN((size_t)(at - from) + s->needle.len, text.len);
    const char *end = memchr(text.ptr + behind, '\n', text.len - behind);
    rt_jw_object(s->w);
    rt_jw_ku64(s->w, "line", s->line);
    rt_jw_ku64(s->w, "offset", at);
    rt_jw_kstr(s->w, "text", end ? rt_str_slice(text, 0, (size_t)(end - text.ptr)) : text);
    rt_jw_end(s->w);
    s->found++;
    return true;
}

static bool search_piece(search *s, rt_str piece, uint64_t piece_at, rt_error *err)
{
    for (size_t i = 0; i + s->needle.len <= piece.len;) {
        rt_str rest = rt_str_slice(piece, i, piece.len);
        ptrdiff_t hit = rt_str_find(rest, s->needle);
        if (hit < 0)
            break;
        uint64_t at = piece_at + i + (size_t)hit;
        i += (size_t)hit + s->needle.len;
        if (at < s->from)
            continue;
        if (s->found == s->max) {
            s->next = at;
            return true;
        }
        count_lines(s, piece, piece_at, at);
        if (!write_match(s, at, err))
            return false;
        s->from = at + s->needle.len; /* not again from the overlap */
    }
    return true;
}

static bool search_all(search *s, rt_error *err)
{
    rt_arena pieces RT_CLEANUP(rt_arena_done) = { 0 };
    uint64_t size = s->v->row->size, at = 0;
    rt_str piece;
    while (at < size && s->next == 0) {
        rt_arena_reset(&pieces);
        if (!rt_artifact_read(s->v->shelf, s->v->row, at, PIECE, &pieces, &piece, err))
            return false;
        if (piece.len == 0)
            return true;
        char *text = rt_arena_copy(&pieces, piece);
        if (s->is_case_ignored)
            to_small(text, piece.len);
        if (!search_piece(s, (rt_str){ text, piece.len }, at, err))
            return false;
        if (at + piece.len >= size)
            return true;
        /* A match may lie across the border: the next piece begins a little before this one's end.
         */
        uint64_t next = at + piece.len - RT_MIN(piece.len - 1, s->needle.len - 1);
        count_lines(s, (rt_str){ text, piece.len }, at, RT_MAX(next, s->counted));
        at = next;
    }
    return true;
}

bool view_search(const view *v, rt_str text, bool is_case_ignored, uint64_t from, uint64_t max,
                 rt_json_writer *w, rt_error *err)
{
    char *needle = rt_arena_copy(v->arena, text);
    search s = { .v = v,
                 .needle = { needle, text.len },
                 .is_case_ignored = is_case_ignored,
                 .from = from,
                 .line = 1,
                 .max = max,
                 .w = w };
    if (is_case_ignored)
        to_small(needle, text.len);
    rt_jw_object(w);
    rt_jw_kstr(w, "artifact_id", v->row->id);
    rt_jw_kstr(w, "search", text);
    rt_jw_karray(w, "matches");
    if (!search_all(&s, err))
        return false;
    rt_jw_end(w);
    if (s.next > 0)
        rt_jw_ku64(w, "next_offset", s.next);
    else
        rt_jw_knull(w, "next_offset");
    rt_jw_end(w);
    return true;
}

/* ---- JSON ---- */

bool view_json(const view *v, rt_str path, rt_json_writer *w, rt_error *err)
{
    rt_json doc, *matches;
    rt_str text;
    size_t count;
    if (v->row->size > VIEW_JSON_MAX)
        return rt_fail(err, RT_LIMIT,
                       "a path is looked up in documents of up to %u MB; this one has %llu bytes",
                       VIEW_JSON_MAX >> 20, (unsigned long long)v->row->size);
    if (!rt_artifact_read(v->shelf, v->row, 0, (size_t)v->row->size, v->arena, &text, err))
        return false;
    if (!rt_json_parse(text, v->arena, &doc, err))
        return rt_wrap(err, "the artifact is not JSON");
    if (!json_path_find(doc, path, v->arena, &matches, &count, err))
        return false;
    rt_jw_object(w);
    rt_jw_kstr(w, "artifact_id", v->row->id);
    rt_jw_kstr(w, "json_path", path);
    rt_jw_karray(w, "matches");
    for (size_t i = 0; i < count; i++)
        rt_jw_json(w, matches[i]);
    rt_jw_end(w);
    rt_jw_ku64(w, "count", count);
    rt_jw_end(w);
    return true;
}
