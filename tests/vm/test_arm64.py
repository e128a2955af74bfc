# SPDX-License-Identifier: Apache-2.0
"""What the guest for arm64 is made of."""

from __future__ import annotations

from vm.arm64 import needed

DEPENDENCIES = """\
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko
kernel/fs/fuse/fuse.ko:
kernel/fs/netfs/netfs.ko:
kernel/net/9p/9pnet.ko:
kernel/drivers/virtio/virtio-pci.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio.ko.xz:
"""


def test_the_guest_gets_modules_with_what_they_need() -> None:
    assert needed(DEPENDENCIES, ("virtio_pci", "9p")) == [
        "kernel/drivers/virtio/virtio-pci.ko.xz: kernel/drivers/virtio/virtio.ko.xz",
        "kernel/drivers/virtio/virtio.ko.xz:",
        "kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/netfs/netfs.ko",
        "kernel/fs/netfs/netfs.ko:",
        "kernel/net/9p/9pnet.ko:",
    ]


def test_a_module_that_the_kernel_has_built_in_is_no_file() -> None:
    assert needed(DEPENDENCIES, ("virtio_blk", "netfs")) == ["kernel/fs/netfs/netfs.ko:"]
