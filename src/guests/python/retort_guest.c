/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retort_guest.c - the extension module with which CPython becomes a zygote and then a cell.
 *
 *     retort_guest.announce(3, '{"language": "python"}')
 *     control = retort_guest.serve(3)              # returns in each sealed child
 *     text, fds = retort_guest.recv(control)       # None at the end
 *     retort_guest.send(control, b'{"op": "result"}')
 *
 * Only the stable ABI of Python 3.8 is used: one build serves every later Python. Waiting for a
 * frame releases the interpreter lock, so a thread the code left behind goes on meanwhile.
 */
#include <dlfcn.h>
#include <sys/mman.h>

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <errno.h>

#include "guests/jail/jail.h"

static PyObject *fail(const rt_error *err)
{
    PyErr_SetString(PyExc_OSError, err->text);
    return NULL;
}

/* -- where objects lie ----------------------------------------------------------------------- */

/*
 * Python takes memory for small objects a megabyte at a time, wherever the kernel finds room. While
 * it warms it gets them side by side, so that jail_gather() can put them into huge pages; a cell
 * takes its own as ever.
 */
#define HUGE_PAGE ((size_t)2 << 20)
#define NEST_SIZE ((size_t)256 << 20)

static char *nest, *nest_free, *nest_open; /* free: from here on; open: up to here it can be used */
static bool is_warming;

static void *take_arena(void *ctx, size_t size)
{
    (void)ctx;
    if (!is_warming || (size_t)(nest + NEST_SIZE - nest_free) < size) {
        void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return at == MAP_FAILED ? NULL : at;
    }
    size_t more = nest_free + size > nest_open
                      ? ((size_t)(nest_free + size - nest_open) + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1)
                      : 0;
    if (more && mprotect(nest_open, more, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    nest_open += more;
    nest_free += size;
    return nest_free - size;
}

static void give_arena(void *ctx, void *at, size_t size)
{
    (void)ctx;
    munmap(at, size);
}

/* Not in the stable ABI, but in every Python since 3.4 as it is here. */
typedef struct arena_allocator {
    void *ctx;
    void *(*alloc)(void *ctx, size_t size);
    void (*free)(void *ctx, void *at, size_t size);
} arena_allocator;

static PyObject *nestle(PyObject *self, PyObject *args)
{
    void (*install)(arena_allocator *);
    *(void **)&install = dlsym(RTLD_DEFAULT, "PyObject_SetArenaAllocator");
    (void)self;
    (void)args;
    char *at = install ? mmap(NULL, NEST_SIZE + HUGE_PAGE, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                       : MAP_FAILED;
    if (at != MAP_FAILED) {
        nest = (char *)(((uintptr_t)at + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
        nest_free = nest_open = nest;
        is_warming = true;
        install(&(arena_allocator){ .alloc = take_arena, .free = give_arena });
    }
    Py_RETURN_NONE;
}

/*
 * No hooks around the fork: Python's own (PyOS_AfterFork_Child) repair what other threads may have
 * held, and a zygote has none. Skipping them leaves a hundred pages uncopied in every cell.
 */
static PyObject *serve(PyObject *self, PyObject *args)
{
    int fd;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &fd))
        return NULL;
    if (is_warming) {
        is_warming = false;
        munmap(nest_open, (size_t)(nest + NEST_SIZE - nest_open));
    }
    return PyLong_FromLong(jail_serve(fd, &(jail_hooks){ 0 }));
}

/*
 * Where the interpreter can be copied: 0 when a frame has come, 1 in a copy. Python's own hooks do
 * the rest, as around any fork: locks are made anew, generators of random numbers are seeded.
 */
static PyObject *park(PyObject *self, PyObject *args)
{
    int fd;
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &fd))
        return NULL;
    PyOS_BeforeFork();
    bool has_arrived = jail_park(fd) == JAIL_ARRIVED;
    if (has_arrived)
        PyOS_AfterFork_Child();
    else
        PyOS_AfterFork_Parent();
    return PyBool_FromLong(has_arrived);
}

static PyObject *is_ahead(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return PyBool_FromLong(jail_is_ahead());
}

static PyObject *announce(PyObject *self, PyObject *args)
{
    int fd;
    const char *about;
    rt_error err = { 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "is", &fd, &about))
        return NULL;
    if (!jail_announce(fd, about, &err))
        return fail(&err);
    Py_RETURN_NONE;
}

static PyObject *fd_list(const jail_frame *frame)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < frame->fd_count; i++) {
        PyObject *fd = PyLong_FromLong(frame->fds[i]);
        if (!fd || PyList_Append(list, fd) != 0)
            Py_CLEAR(list);
        Py_XDECREF(fd);
    }
    return list;
}

static PyObject *frame_tuple(jail_frame *frame)
{
    PyObject *data = PyUnicode_DecodeUTF8(frame->data, (Py_ssize_t)frame->len, NULL);
    PyObject *fds = data ? fd_list(frame) : NULL;
    PyObject *pair = fds ? PyTuple_Pack(2, data, fds) : NULL;
    Py_XDECREF(data);
    Py_XDECREF(fds);
    if (pair)
        frame->fd_count = 0; /* Python owns them now */
    return pair;
}

/* A guest has one socket to read; its number never changes. */
static jail_reader reader = { .fd = -1 };

static PyObject *is_ready(PyObject *self, PyObject *args)
{
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &reader.fd))
        return NULL;
    return PyBool_FromLong(jail_reader_is_ready(&reader));
}

static PyObject *has_more(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return PyBool_FromLong(jail_reader_has_more(&reader));
}

static PyObject *recv_frame(PyObject *self, PyObject *args)
{
    bool ok;
    jail_frame frame = { 0 };
    rt_error err = { 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &reader.fd))
        return NULL;
    do {
        err = (rt_error){ 0 };
        Py_BEGIN_ALLOW_THREADS ok = jail_reader_next(&reader, JAIL_FRAME_MAX, &frame, &err);
        Py_END_ALLOW_THREADS if (!ok && err.sys_errno == EINTR &&
                                 PyErr_CheckSignals() != 0) return NULL;
    } while (!ok && err.sys_errno == EINTR);
    if (!ok && err.code != RT_NOT_FOUND)
        return fail(&err);
    if (!ok)
        Py_RETURN_NONE;
    PyObject *pair = frame_tuple(&frame);
    jail_frame_done(&frame);
    return pair;
}

static PyObject *send_frame(PyObject *self, PyObject *args)
{
    int fd;
    bool ok;
    const char *data;
    Py_ssize_t len;
    rt_error err = { 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "iy#", &fd, &data, &len))
        return NULL;
    Py_BEGIN_ALLOW_THREADS ok = jail_frame_send(fd, data, (size_t)len, NULL, 0, &err);
    Py_END_ALLOW_THREADS if (!ok) return fail(&err);
    Py_RETURN_NONE;
}

static PyObject *limit(PyObject *self, PyObject *args)
{
    unsigned long long cpu, data, file, processes, descriptors;
    rt_error err = { 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKK", &cpu, &data, &file, &processes, &descriptors))
        return NULL;
    jail_limits limits = { .cpu_seconds = cpu,
                           .data_bytes = data,
                           .file_bytes = file,
                           .processes = processes,
                           .descriptors = descriptors };
    if (!jail_limit(&limits, &err))
        return fail(&err);
    Py_RETURN_NONE;
}

/* With the interpreter's lock held: no thread that the code left goes on. */
static PyObject *leave(PyObject *self, PyObject *args)
{
    int fd, status;
    (void)self;
    if (!PyArg_ParseTuple(args, "ii", &fd, &status))
        return NULL;
    jail_leave(fd, status);
}

static PyMethodDef functions[] = {
    { "is_ahead", is_ahead, METH_NOARGS, "Whether nobody waits for this cell yet." },
    { "nestle", nestle, METH_NOARGS, "Objects from now on lie close together." },
    { "serve", serve, METH_VARARGS, "serve(fd): fork on each order; returns in a sealed child" },
    { "park", park, METH_VARARGS, "park(fd): wait to be copied; True in a copy" },
    { "announce", announce, METH_VARARGS, "announce(fd, text): tell the warden we are warm" },
    { "recv", recv_frame, METH_VARARGS, "recv(fd): (text, [descriptors]), or None at the end" },
    { "ready", is_ready, METH_VARARGS, "ready(fd): whether recv() would find something" },
    { "more", has_more, METH_NOARGS,
      "more(): whether something was read along with the last frame" },
    { "send", send_frame, METH_VARARGS, "send(fd, bytes): one frame" },
    { "leave", leave, METH_VARARGS, "leave(fd, status): end when nobody listens any more" },
    { "limit", limit, METH_VARARGS,
      "limit(cpu_seconds, data_bytes, file_bytes, processes, descriptors): 0 leaves it" },
    { NULL, NULL, 0, NULL },
};

static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, .m_name = "retort_guest", .m_size = -1,
                                     .m_methods = functions };

PyMODINIT_FUNC PyInit_retort_guest(void)
{
    return PyModule_Create(&module);
}
