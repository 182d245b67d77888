"""numpy, pandas and matplotlib, where the host has them: preloaded, converted, drawn."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pandas")
pytest.importorskip("matplotlib")


def test_arrays_and_frames_become_json(run):
    answer = run("python", """
import numpy as np, pandas as pd
frame = pd.DataFrame({"a": [1, 2], "b": [0.5, float("nan")]})
return {"frame": frame, "eye": np.eye(2), "one": np.int64(5), "series": frame["a"]}
""")
    assert answer["result"] == {"frame": [{"a": 1, "b": 0.5}, {"a": 2, "b": None}],
                                "eye": [[1.0, 0.0], [0.0, 1.0]], "one": 5, "series": [1, 2]}


def test_linear_algebra_does_not_wait_for_threads_of_the_zygote(run):
    answer = run("python", "import numpy as np\nreturn np.linalg.inv(np.eye(400)).shape", timeout="10s")
    assert answer["result"] == [400, 400]


def test_open_figures_come_back_as_pictures(run):
    answer = run("python", "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\nplt.show()")
    (picture,) = answer["artifacts"]
    assert picture["name"] == "figure-1.png" and picture["type"] == "image/png"
    assert picture["base64"].startswith("iVBORw0KGgo")


def test_two_cells_draw_different_numbers(run):
    code = "import numpy as np\nreturn np.random.rand()"
    assert run("python", code)["result"] != run("python", code)["result"]
