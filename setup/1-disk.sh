#!/usr/bin/env bash
# Step 1 of 4 on a CloudLab node: gives the root file system the free space behind its partition.
#
#     sudo bash setup/1-disk.sh [--dry-run] [--disk sda]
#
# Why: CloudLab's images have a root partition of 16 or 64 GB on a disk of hundreds, and PyTorch with CUDA alone
# needs 8. The disk is found from the mounted root. It is left as it is unless all of this holds: the root is an
# ext4 file system, directly on a partition of Linux's type, of a whole disk (the one named by --disk, if given);
# and behind that partition there is nothing but free space, or swap that is not in use.
# No partition is ever moved or deleted, and the partition table as it was is kept in /var/backups.
#
# --dry-run prints what it would run, and changes nothing. A second run finds that there is nothing to do.
set -euo pipefail
# shellcheck source=setup/steps.sh
source "$(dirname "${BASH_SOURCE[0]}")/steps.sh"

LINUX=" 83 0FC63DAF-8483-4772-8E79-3D69D8477DE4 4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709 " # dos; gpt: data, root
SWAP=" 82 0657FD6D-A4AB-43C4-84E5-0933C84B4F4F "
DOS_LIMIT=$(((1 << 32) - 1)) # sectors; such a table has no room for larger numbers
WORTH=$((64 << 20)) # bytes; less is not worth touching a partition table

NEXT="sudo bash setup/2-driver.sh (no need to reboot before)"

# ---- what is there

property() { lsblk --noheadings --nodeps --bytes --output "$1" "$2" | tr -d ' '; }

# Sets device, disk and number: /dev/nvme0n1p3, nvme0n1 and 3.
find_root() {
    local kind type
    device="$(findmnt --noheadings --nofsroot --output SOURCE /)"
    type="$(findmnt --noheadings --output FSTYPE /)"
    [[ $type == ext4 ]] || fail "the root file system is $type, not ext4; this step does not touch it"
    kind="$(property TYPE "$device" 2> /dev/null || true)"
    case "$kind" in
        part) ;;
        lvm) fail "the root $device is on LVM, not directly on a partition; grow it by hand with lvextend --resizefs" ;;
        *) fail "the root $device is not on a partition (it is: ${kind:-unknown}); this step does not touch it" ;;
    esac
    disk="$(property PKNAME "$device")"
    number="${device#"/dev/$disk"}"
    number="${number#p}"
    [[ $number =~ ^[0-9]+$ ]] || fail "$device does not look like a partition of $disk; this step does not touch it"
    kind="$(property TYPE "/dev/$disk")"
    [[ $kind == disk ]] || fail "the root is on $disk, which is no disk (it is: $kind); this step does not touch it"
}

is_expected() {
    local expected="${given[--disk]:-$disk}"
    [[ ${expected#/dev/} == "$disk" ]] ||
        fail "the root is on $disk, not on ${expected#/dev/} as you said; look with lsblk, nothing has been changed"
}

partitions() { sed -n 's|^\(/dev/[^ ]*\) :.*|\1|p' <<< "$table"; }

# A field of a partition's line in the table: start, size or type.
field() { sed -n "s|^$2 :.*[ ,]$1= *\([^, ]*\).*|\1|p" <<< "$table"; }

# Sets table, sector, start, end (in sectors, the first one behind the root) and limit, where the free space ends.
read_table() {
    local type
    table="$(sfdisk --dump "/dev/$disk" | sed 's/, name=.*//')" || # a name can be anything
        fail "the partition table of $disk cannot be read (above)"
    type="$(field type "$device")"
    [[ $LINUX == *" ${type:-none} "* ]] ||
        fail "$device has partition type ${type:-unknown}, not that of a Linux file system; this step does not touch it"
    sector="$(sed -n 's/^sector-size: //p' <<< "$table")"
    start="$(field start "$device")"
    end=$((start + $(field size "$device")))
    limit=$(($(property SIZE "/dev/$disk") / ${sector:=512}))
    if grep -qx 'label: dos' <<< "$table" && ((limit > DOS_LIMIT)); then limit=$DOS_LIMIT; fi
}

# Lowers the limit to the first partition behind the root, if all that are there are unused swap.
look_behind() {
    local other at
    for other in $(partitions); do
        at="$(field start "$other")"
        if ((at <= start)); then continue; fi
        [[ $SWAP == *" $(field type "$other") "* ]] ||
            fail "behind the root $device there is another partition, $other, that is not swap; this step does not touch the disk"
        if swapon --show=NAME --noheadings | grep -xF "$other" > /dev/null; then
            fail "behind the root $device there is swap in use, $other. If you can do without: sudo swapoff $other," \
                "remove its line from /etc/fstab, and run this step again"
        fi
        if ((at < limit)); then limit=$at && behind="$other"; fi
    done
}

file_system_bytes() {
    local found count size
    found="$(dumpe2fs -h "$device" 2> /dev/null)" || fail "dumpe2fs cannot read $device; this step does not touch it"
    count="$(sed -n 's/^Block count: *//p' <<< "$found")"
    size="$(sed -n 's/^Block size: *//p' <<< "$found")"
    echo $((count * size))
}

human() { numfmt --to=iec --suffix=B "$1"; }

# ---- what is done

grow_partition() {
    local backup output status=0
    backup="/var/backups/$disk-partitions-$(date +%Y-%m-%d-%H%M%S).sfdisk"
    if ! has growpart; then update_packages && install_packages cloud-guest-utils; fi
    run bash -c "sfdisk --dump /dev/$disk > $backup"
    if [[ -n $dry_run ]]; then run growpart "/dev/$disk" "$number" && return; fi
    output="$(run growpart "/dev/$disk" "$number" 2>&1)" || status=$?
    echo "$output" >&2
    ((status == 0)) || [[ $output == *NOCHANGE* ]] ||
        fail "growpart failed (above). The table as it was is in $backup: compare with sfdisk --dump /dev/$disk"
}

cannot_grow() {
    [[ -n ${behind:-} ]] || return 0
    fail "the root $device ends where the swap $behind begins, and no step deletes partitions. If you can do without" \
        "that swap, which is not in use: remove its line from /etc/fstab, sudo sfdisk --delete /dev/$disk ${behind##*[!0-9]}," \
        "and run this step again"
}

grow() {
    local room=$(((limit - end) * sector)) slack used
    used="$(file_system_bytes)"
    slack=$(((end - start) * sector - used))
    if ((room < WORTH && slack < WORTH)); then
        cannot_grow
        already "the root $device has all of $disk that it can have ($(human $(((end - start) * sector))))"
        return
    fi
    if ((room >= WORTH)); then
        say "the root $device has $(human $(((end - start) * sector))), and $(human "$room") behind it are free"
        grow_partition
    else
        say "the partition $device is larger than the file system on it, by $(human "$slack")"
    fi
    run resize2fs "$device" || fail "resize2fs failed (above); the partition is larger now, which harms nothing"
    if [[ -z $dry_run ]]; then say "the root file system has $(human "$(file_system_bytes)") now"; fi
}

read_arguments "--disk" "$@"
is_root || fail "reading a partition table takes root, also for a dry run: sudo bash setup/$step${dry_run:+ --dry-run}"
for tool in findmnt lsblk sfdisk dumpe2fs resize2fs; do
    has "$tool" || fail "there is no $tool here; install it: apt-get install util-linux fdisk e2fsprogs"
done
find_root
is_expected
read_table
look_behind
grow
next_step "$NEXT"
