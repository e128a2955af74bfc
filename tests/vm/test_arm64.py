# SPDX-License-Identifier: Apache-2.0
"""What the guest for arm64 is made of."""

from __future__ import annotations

from vm.arm64 import drivers

DEPENDENCIES = """\
kernel/fs/9p/9p.ko: kernel/net/9p/9pnet.ko kernel/fs/fscache/fscache.ko kernel/fs/netfs/netfs.ko
kernel/fs/fscache/fscache.ko: kernel/fs/netfs/netfs.ko
kernel/fs/netfs/netfs.ko:
kernel/net/9p/9pnet.ko:
kernel/drivers/virtio/virtio-pci.ko.xz: kernel/drivers/virtio/virtio.ko.xz
kernel/drivers/virtio/virtio.ko.xz:
"""


def test_drivers_are_loaded_after_those_that_they_need() -> None:
    assert drivers(DEPENDENCIES, ("virtio_pci", "9p")) == [
        "kernel/drivers/virtio/virtio.ko.xz",
        "kernel/drivers/virtio/virtio-pci.ko.xz",
        "kernel/fs/netfs/netfs.ko",
        "kernel/fs/fscache/fscache.ko",
        "kernel/net/9p/9pnet.ko",
        "kernel/fs/9p/9p.ko",
    ]


def test_a_driver_that_the_kernel_has_built_in_is_no_file() -> None:
    assert drivers(DEPENDENCIES, ("virtio_blk", "netfs")) == ["kernel/fs/netfs/netfs.ko"]
