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
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>
#include <errno.h>
#include <poll.h>

#include "guests/jail/jail.h"

static PyObject *fail(const rt_error *err)
{
    PyErr_SetString(PyExc_OSError, err->text);
    return NULL;
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

static PyObject *is_ready(PyObject *self, PyObject *args)
{
    struct pollfd polled = { .events = POLLIN };
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &polled.fd))
        return NULL;
    return PyBool_FromLong(poll(&polled, 1, 0) > 0);
}

static PyObject *recv_frame(PyObject *self, PyObject *args)
{
    int fd;
    bool ok;
    jail_frame frame = { 0 };
    rt_error err = { 0 };
    (void)self;
    if (!PyArg_ParseTuple(args, "i", &fd))
        return NULL;
    do {
        err = (rt_error){ 0 };
        Py_BEGIN_ALLOW_THREADS ok = jail_frame_await(fd, JAIL_FRAME_MAX, &frame, &err);
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

static PyMethodDef functions[] = {
    { "is_ahead", is_ahead, METH_NOARGS, "Whether nobody waits for this cell yet." },
    { "serve", serve, METH_VARARGS, "serve(fd): fork on each order; returns in a sealed child" },
    { "park", park, METH_VARARGS, "park(fd): wait to be copied; True in a copy" },
    { "announce", announce, METH_VARARGS, "announce(fd, text): tell the warden we are warm" },
    { "recv", recv_frame, METH_VARARGS, "recv(fd): (text, [descriptors]), or None at the end" },
    { "ready", is_ready, METH_VARARGS, "ready(fd): whether recv() would find something" },
    { "send", send_frame, METH_VARARGS, "send(fd, bytes): one frame" },
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
