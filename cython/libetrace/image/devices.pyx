# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Which paths are devices: files that keep nothing of what is written to them.

The type of a file decides where the trace knows it: character devices and sockets anywhere are
devices; regular files, directories, named pipes and disks below /dev are not. The name decides for a
path that was gone when the trace was parsed, or was a symbolic link: /dev/NAME and what is below a
directory in which the kernel or udev(7) puts device nodes is a device, the rest (/dev/shm, any other
tmpfs) is not. Source: the `devnode` callbacks of Linux 6.12 and the rules of systemd 257.
"""
import bisect

from libc.string cimport memchr, memcmp, strlen

from libetrace.core.types cimport u8
from libetrace.image.schema cimport EXISTS, TYPE, TYPE_CHR, TYPE_LNK, TYPE_SOCK

cdef enum:
    N_DIRECTORIES = 36

cdef const char **DIRECTORIES = [
    "accel", "block", "bsg", "bus", "cachefiles", "char", "cpu", "disk", "dma_heap", "dri", "dvb",
    "fd", "infiniband", "input", "iio", "mapper", "md", "misc", "net", "nvidia-caps", "pktcdvd", "pts",
    "raw", "serial", "snd", "socket", "tee", "uio", "usb", "usbmon", "v4l", "vfio", "vduse", "xen",
    "zvol", "rtc",
]

cdef const char *DEV = b"/dev/"


# A directory of device nodes, by its name below /dev.
cdef bint holds_nodes(const char *name, size_t len) noexcept nogil:
    cdef int i
    for i in range(N_DIRECTORIES):
        if strlen(DIRECTORIES[i]) == len and not memcmp(DIRECTORIES[i], name, len):
            return True
    return False


cdef bint is_device_path(const char *bytes, size_t len, u32 mode) noexcept nogil:
    cdef u32 type = mode & TYPE if mode & EXISTS else 0
    cdef const char *slash
    if type in (TYPE_CHR, TYPE_SOCK):
        return True
    if type and type != TYPE_LNK:
        return False
    if len <= 5 or memcmp(bytes, DEV, 5):
        return False
    slash = <const char *>memchr(bytes + 5, c"/", len - 5)
    return slash == NULL or holds_nodes(bytes + 5, slash - bytes - 5)


def is_device(bytes path not None, int mode):
    """Return whether a path is a device; `mode` as in the columns of that name, 0: not known."""
    return is_device_path(path, len(path), <u32>mode)


def device_mask(image):
    """Return a byte for each row of `paths`, 1 for devices."""
    modes = bytes(image["paths"]["mode"])
    mask = bytearray(modes.translate(_BY_TYPE))
    for row in _below_dev(image):
        mask[row] = is_device(image.path_string(row), modes[row])
    return mask


_BY_TYPE = bytes(is_device(b"", mode) for mode in range(256))


def _below_dev(image):
    rows = range(image["paths"].n_rows)
    if not image["strings"].n_rows:  # paths without names
        return range(0)
    first, end = (bisect.bisect_left(rows, text, key=image.path_string) for text in (b"/dev/", b"/dev0"))
    return range(first, end)
