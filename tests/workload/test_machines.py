import pytest

from rota.core.cluster import Cluster, Node
from rota.core.errors import TraceError
from rota.workload.public import read_cluster, read_nodes

CLUSTER = "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n"
NODES = "sn,cpu_milli,memory_mib,gpu,model\n"


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "machines.csv"
        path.write_text(text)
        return path

    return write


def test_a_cluster_file_describes_equal_nodes(file):
    assert read_cluster(file(CLUSTER + "2,3,8,92,520")) == Cluster.uniform(3, 8, switches=2)


def test_a_node_list_gives_nodes_of_several_kinds_and_leaves_out_those_without_gpus(file):
    rows = "n0,32000,262144,0,\nn1,128000,786432,8,G3\nn2,64000,262144,2,P100\n"
    assert read_nodes(file(NODES + rows)) == Cluster((Node(8, kind="G3"), Node(2, kind="P100")))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        (CLUSTER, "0 rows after the header; expected 1"),
        (CLUSTER + "1,8,8,92,520\n1,8,8,92,520\n", "2 rows after the header; expected 1"),
        (CLUSTER + "1,8,0,92,520\n", "line 2: num_gpu_p_node: '0' is not a number of 1 or more"),
        (CLUSTER + "1,8.5,8,92,520\n", "line 2: num_node_p_switch: '8.5' is not a whole number"),
        ("num_switch\n1\n", "no column 'num_node_p_switch', 'num_gpu_p_node'"),
    ],
)
def test_a_mistake_in_a_cluster_file_is_reported(file, text, message):
    with pytest.raises(TraceError, match=message):
        read_cluster(file(text))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "no node in it has a GPU"),
        ("n0,1,1,0,\n", "no node in it has a GPU"),
        ("n0,1,1,8,\n", "line 2: model: '' is not there: the field is empty"),
        ("n0,1,1,x,G2\n", "line 2: gpu: 'x' is not a number"),
        ("n0,1,1,8,G2\nn0,1,1,8,G2\n", "line 3: sn: 'n0' is not unique: line 2 has it too"),
    ],
)
def test_a_mistake_in_a_node_list_is_reported(file, rows, message):
    with pytest.raises(TraceError, match=message):
        read_nodes(file(NODES + rows))
