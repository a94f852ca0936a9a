"""What the CloudLab profile asks for, written down by a stand-in for geni-lib.

It is a stand-in because the geni-lib that is published is Python 2 (and needs a package that it does not
name), so it cannot be used beside rota. The stand-in knows the names that the profile uses, and no others.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROFILE = Path(__file__).parents[2] / "profile.py"
IMAGE = "urn:publicid:IDN+emulab.net+image+emulab-ops//UBUNTU22-64-STD"

PORTAL = """
import json, os, sys
from geni.rspec.pg import Request

class ParameterType:
    INTEGER, NODETYPE, IMAGE = "integer", "nodetype", "image"

class ParameterError(Exception):
    def __init__(self, message, names):
        self.said = [message, names]

class Chosen:
    pass

class Context:
    def __init__(self):
        self.defined, self.errors = [], []
    def defineParameter(self, name, description, kind, default, longDescription=None):
        self.defined.append([name, kind, default])
    def bindParameters(self):
        chosen, given = Chosen(), json.loads(os.environ["CHOSEN"])
        for name, kind, default in self.defined:
            setattr(chosen, name, given.pop(name, default))
        assert not given, given
        return chosen
    def reportError(self, error):
        self.errors.append(error.said)
    def verifyParameters(self):
        if self.errors:
            json.dump(self.errors, sys.stderr)
            sys.exit(100 + len(self.errors))
    def makeRequestRSpec(self):
        self.request = Request()
        return self.request
    def printRequestRSpec(self):
        print(json.dumps({"parameters": self.defined, **self.request.asked}))

context = Context()
"""

PG = """
class IPv4Address:
    def __init__(self, address, netmask):
        self.text = address + "/" + netmask

class Asked(object):
    __slots__ = ("asked",)
    def __init__(self, **asked):
        object.__setattr__(self, "asked", asked)

class Interface(Asked):
    def addAddress(self, address):
        self.asked["address"] = address.text

class Store(Asked):
    def __setattr__(self, name, value):
        assert name in ("size", "placement"), name
        self.asked[name] = value

class Node(Asked):
    def __setattr__(self, name, value):
        assert name in ("hardware_type", "disk_image"), name
        self.asked[name] = value
    def Blockstore(self, name, mount):
        store = Store(name=name, mount=mount)
        self.asked["store"] = store.asked
        return store
    def addInterface(self, name):
        return Interface(name=self.asked["name"] + ":" + name)

class Lan(Asked):
    def addInterface(self, interface):
        self.asked["interfaces"].append(interface.asked)

class Request(Asked):
    def __init__(self):
        Asked.__init__(self, nodes=[], lans=[])
    def RawPC(self, name):
        node = Node(name=name)
        self.asked["nodes"].append(node.asked)
        return node
    def LAN(self, name):
        lan = Lan(name=name, interfaces=[])
        self.asked["lans"].append(lan.asked)
        return lan
"""


@pytest.fixture
def ask(tmp_path):
    """A function that runs the profile as CloudLab does, with what was chosen on the form."""
    for name, text in {"portal": PORTAL, "rspec/pg": PG, "rspec/igext": "", "rspec/__init__": ""}.items():
        file = tmp_path / "geni" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (tmp_path / "geni" / "__init__.py").write_text("")

    def ask(**chosen):
        variables = {"PYTHONPATH": str(tmp_path), "CHOSEN": json.dumps(chosen)}
        script = tmp_path / "genilib.py"  # it is not called profile.py where it is run
        script.write_bytes(PROFILE.read_bytes())
        return subprocess.run(
            [sys.executable, str(script)], env=variables, capture_output=True, text=True, check=False
        )

    return ask


def asked(run):
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_by_default_it_is_one_r7525_with_ubuntu_and_nothing_that_runs_by_itself(ask):
    assert asked(ask()) == {
        "parameters": [
            ["nodes", "integer", 1],
            ["hardware", "nodetype", "r7525"],
            ["image", "image", IMAGE],
            ["mydata", "integer", 0],
        ],
        "nodes": [{"name": "node0", "hardware_type": "r7525", "disk_image": IMAGE}],
        "lans": [],
    }


def test_several_nodes_are_in_a_network_of_their_own(ask):
    found = asked(ask(nodes=3, hardware="d7525"))
    assert [node["name"] for node in found["nodes"]] == ["node0", "node1", "node2"]
    assert {node["hardware_type"] for node in found["nodes"]} == {"d7525"}
    interfaces = [
        {"name": f"node{number}:if1", "address": f"10.10.1.{number + 1}/255.255.255.0"} for number in range(3)
    ]
    assert found["lans"] == [{"name": "lan", "interfaces": interfaces}]


def test_a_temporary_file_system_is_asked_for_on_every_node(ask):
    stores = [node["store"] for node in asked(ask(nodes=2, mydata=200))["nodes"]]
    assert stores == [
        {"name": f"mydata{number}", "mount": "/mydata", "size": "200GB", "placement": "any"}
        for number in range(2)
    ]


def test_what_cannot_be_asked_for_is_said_on_the_form(ask):
    run = ask(nodes=0, mydata=-1)
    assert (run.returncode, run.stdout) == (102, "")
    assert json.loads(run.stderr) == [
        ["Give 1 node or more.", ["nodes"]],
        ["Give 0 GB or more.", ["mydata"]],
    ]


def test_the_instructions_are_the_steps_that_there_are(ask):
    text = PROFILE.read_text("ascii")  # Python 2 would want to be told about anything else
    instructions = text.split("\nInstructions:\n")[1].split('"""')[0]
    steps = [word for word in instructions.split() if word.startswith("setup/")]
    assert steps == [
        f"setup/{name}" for name in ("1-disk.sh", "2-driver.sh", "3-module.sh", "4-python.sh", "check.py")
    ]
    assert all((PROFILE.parent / step).is_file() for step in steps)


def test_in_its_folder_python_still_has_its_own_profile_module():
    code = "import cProfile, profile; profile.Profile().runcall(sorted, [2, 1]); print(profile.__doc__)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROFILE.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "profiling" in done.stdout
