"""The data sets that rota knows: what is in them when they are whole."""

from dataclasses import dataclass

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
CIFAR10 = "airplane automobile bird cat deer dog frog horse ship truck"
CIFAR100 = """
apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can
castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin
elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal
shark shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank
telephone television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm
"""


@dataclass(frozen=True)
class DataSet:
    """What a data set is when it is whole."""

    name: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    """Channels, height and width of an image."""
    train: int
    """How many images there are to train with, the later validation split included."""
    test: int
    mirrored: bool = True
    """Whether an image seen in a mirror still shows the same thing."""


CATALOGUE = {
    found.name: found
    for found in (
        DataSet("digits", tuple("0123456789"), (1, 8, 8), 1437, 360, mirrored=False),
        DataSet("fashion-mnist", FASHION, (1, 28, 28), 60_000, 10_000),
        DataSet("cifar10", tuple(CIFAR10.split()), (3, 32, 32), 50_000, 10_000),
        DataSet("cifar100", tuple(CIFAR100.split()), (3, 32, 32), 50_000, 10_000),
    )
}
