"""GPU nodes for rota: deep-learning training whose schedule can be simulated.

The repository is on every node, in /local/repository. Nothing is installed by itself.

Instructions:
On each node, one after the other; every step says what comes next, and with `--dry-run` what it would do:

    cd /local/repository
    sudo bash setup/1-disk.sh      # the root file system gets the rest of its disk
    sudo bash setup/2-driver.sh    # NVIDIA's driver
    sudo bash setup/3-module.sh    # its kernel module; may ask you to reboot, and to run it again
    bash setup/4-python.sh         # Python, PyTorch, rota
    python3 setup/check.py --need gpu,ray

Your home folder is small and on the network: keep data sets and results on the node.
"""

# CloudLab runs this file to learn what to allocate (https://docs.cloudlab.us/geni-lib.html), and asks for the
# parameters on a form. Name and place are CloudLab's. It is also Python 2, as the published geni-lib is.


def parameters(portal):
    """What the form asks for, and what was chosen."""
    context, kinds = portal.context, portal.ParameterType
    context.defineParameter(
        "nodes",
        "Number of nodes",
        kinds.INTEGER,
        1,
        longDescription="If there are several, they are in a network of their own, 10.10.1.1 and following.",
    )
    context.defineParameter(
        "hardware",
        "Type of the nodes",
        kinds.NODETYPE,
        "r7525",
        longDescription="r7525 (Clemson): two V100S; d7525 (Wisconsin): an A30; d8545 (the same): four A100.",
    )
    context.defineParameter(
        "image",
        "Disk image",
        kinds.IMAGE,
        "urn:publicid:IDN+emulab.net+image+emulab-ops//UBUNTU22-64-STD",
        longDescription="The steps of setup/ are for Ubuntu 22.04 and newer.",
    )
    context.defineParameter(
        "mydata",
        "GB of a temporary file system in /mydata",
        kinds.INTEGER,
        0,
        longDescription="0 for none. It is gone when the experiment ends. If it comes to lie behind the root "
        "on the same disk, setup/1-disk.sh leaves that disk as it is: then put data and results there.",
    )
    return context.bindParameters()


def check(portal, chosen):
    """Says on the form what cannot be asked for."""
    if chosen.nodes < 1:
        portal.context.reportError(portal.ParameterError("Give 1 node or more.", ["nodes"]))
    if chosen.mydata < 0:
        portal.context.reportError(portal.ParameterError("Give 0 GB or more.", ["mydata"]))
    portal.context.verifyParameters()


def add_node(request, number, chosen):
    """One bare machine, without anything that runs by itself."""
    node = request.RawPC("node" + str(number))
    node.hardware_type = chosen.hardware
    node.disk_image = chosen.image
    if chosen.mydata:
        store = node.Blockstore("mydata" + str(number), "/mydata")
        store.size = str(chosen.mydata) + "GB"
        store.placement = "any"
    return node


def connect(request, nodes, pg):
    """A network of all nodes."""
    network = request.LAN("lan")
    for number, node in enumerate(nodes):
        interface = node.addInterface("if1")
        interface.addAddress(pg.IPv4Address("10.10.1." + str(number + 1), "255.255.255.0"))
        network.addInterface(interface)


def main():
    """Ask, check, and print the request."""
    import geni.portal as portal
    import geni.rspec.igext  # noqa: F401 (gives nodes their Blockstore)
    import geni.rspec.pg as pg

    chosen = parameters(portal)
    check(portal, chosen)
    request = portal.context.makeRequestRSpec()
    nodes = [add_node(request, number, chosen) for number in range(chosen.nodes)]
    if len(nodes) > 1:
        connect(request, nodes, pg)
    portal.context.printRequestRSpec()


if __name__ == "profile":
    # Somebody in this folder imports Python's own module of that name, as cProfile and PyTorch do: be it.
    import os
    import sysconfig

    with open(os.path.join(sysconfig.get_path("stdlib"), "profile.py")) as standard:  # noqa: PTH118, PTH123
        exec(compile(standard.read(), standard.name, "exec"))
else:
    main()
