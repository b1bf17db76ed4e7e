"""Send groups and branch paths by case tables (the notation is in `support.markings`)."""

from __future__ import annotations

from support.markings import Steps, follow, graph_of, play, shown, table


@table(
    members_in_order=("a w: w>END", "a", [("a*w,w", "w@w[0] w@w[1]"), ("w w", "END")]),
    edges_once_a_group=(
        "a w x: w>x",
        "a",
        [("a*w,w,w", "w@w[0] w@w[1] w@w[2]"), ("w w", "w@w[2]"), ("w", "x"), ("x", "")],
    ),
    sends_replace_edges=("a w x: a>x", "a", [("a*w", "w@w[0]"), ("w", "")]),
    no_sends=("a w x: a>x", "a", [("a*", "")]),
    one_arrival_a_group=(
        "a w b d: ^a ^b w,b=all>d",
        "a@a b@b",
        [("a*w,w b", "w@a/w[0] w@a/w[1] d<b"), ("w", "w@a/w[1] d<b"), ("w", "d")],
    ),
    never_merges_with_a_trigger=(
        "a b w: ^a ^b b>w",
        "a@a b@b",
        [("a*w b", "w@a/w[0] w@b"), ("w w", "")],
    ),
    mixed_targets=("a v w x y: v>x w>y", "a", [("a*w,v", "v@v[1] w@w[0]"), ("v", "w@w[0]"), ("w", "x@x y@y")]),
    mixed_targets_one_edge=("a v w x: v>x w>x", "a", [("a*w,v", "v@v[1] w@w[0]"), ("v w", "x"), ("x", "")]),
    a_member_that_jumps=(
        "a w x y: w>x",
        "a",
        [("a*w,w", "w@w[0] w@w[1]"), ("w=y", "w@w[1] y@w[0]"), ("y w", "x"), ("x", "")],
    ),
    a_member_that_routes=(
        "a w x y: w>x",
        "a",
        [("a*w,w", "w@w[0] w@w[1]"), ("w?y", "w@w[1] y@w[0]"), ("w", "x y@w[0]")],
    ),
    all_members_jump=("a w x y: w>x", "a", [("a*w,w", "w@w[0] w@w[1]"), ("w=y w=y", "y"), ("y", "")]),
    all_members_jump_one_by_one=(
        "a w x y: w>x",
        "a",
        [("a*w,w", "w@w[0] w@w[1]"), ("w=y", "w@w[1] y@w[0]"), ("w=y", "y@w[0] y@w[1]")],
    ),
    members_that_route_to_the_join=(
        "a w b d: ^a ^b w,b=all>d",
        "a@a b@b",
        [("a*w,w b", "w@a/w[0] w@a/w[1] d<b"), ("w=d", "w@a/w[1] d<b"), ("w=d", "d")],
    ),
    nested_groups=(
        "a v w x: v>x w>x",
        "a",
        [
            ("a*v,v", "v@v[0] v@v[1]"),
            ("v*w,w", "v@v[1] w@v[0]/w[0] w@v[0]/w[1]"),
            ("v", "w@v[0]/w[0] w@v[0]/w[1] x"),
            ("w w", "x x@v[0]"),
        ],
    ),
    a_member_that_sends_nothing=("a w x: w>x", "a", [("a*w,w", "w@w[0] w@w[1]"), ("w*", "w@w[1]"), ("w", "x")]),
    every_member_sends_nothing=("a w x: w>x", "a", [("a*w,w", "w@w[0] w@w[1]"), ("w* w*", "")]),
    two_groups_to_one_worker=(
        "a b w x: ^a ^b w>x",
        "a@a b@b",
        [("a*w,w b*w", "w@a/w[0] w@a/w[1] w@b/w[0]"), ("w.2", "w@a/w[0] w@a/w[1] x@b"), ("w w", "x@b x@a")],
    ),
    send_to_itself=("a x: a>x", "a", [("a*a,a", "a@a[0] a@a[1]"), ("a a", "x")]),
)
def test_send_groups(text: str, begins: str, steps: Steps) -> None:
    """A group leaves by edges and arrives at joins once, when its last member ends; jumps of a member go at once."""
    follow(text, begins, steps)


@table(
    active_waits_for_a_pending_group=(
        "a b v w x d: ^a ^b a?v,w w>x x,b=active>d",
        "a@a b@b",
        [
            ("a*w,v", "b@b v@a/v[1] w@a/w[0]"),
            ("w", "b@b v@a/v[1]"),
            ("b", "v@a/v[1] d<b"),
            ("v", "x@a d<b"),
            ("x", "d"),
        ],
    ),
    active_waits_for_the_arrival_of_a_pending_group=(
        "a b v w d: ^a ^b a?v,w w,b=active>d",
        "a@a b@b",
        [("a*w,v", "b@b v@a/v[1] w@a/w[0]"), ("w", "b@b v@a/v[1]"), ("b", "v@a/v[1] d<b"), ("v", "d")],
    ),
    a_lap_of_any_waits_for_a_pending_group=(
        "a b v w x d: ^a ^b a?v,w w>x x,b=any>d",
        "a@a b@b",
        [
            ("a*w,v", "b@b v@a/v[1] w@a/w[0]"),
            ("w", "b@b v@a/v[1]"),
            ("b", "v@a/v[1] d@b"),
            ("v", "x@a d@b"),
            ("x", "d@b"),
        ],
    ),
)
def test_joins_know_of_open_groups(text: str, begins: str, steps: Steps) -> None:
    """What an open group will still do counts as about to run, although its ended members are not in the frontier."""
    follow(text, begins, steps)


@table(
    lone_path_stays_empty=("a b c: a>b b>c", "a", [("a", "b"), ("b", "c")]),
    splits_nest=("a b c d e: a>b a>c b>d b>e", "a", [("a", "b@b c@c"), ("b", "c@c d@b/d e@b/e")]),
    coming_back_pops=("a b c: a>b a>c b>a", "a", [("a", "b@b c@c"), ("b", "a c@c"), ("a", "b@b c@c c@c")]),
    loops_do_not_grow=(
        "a b c d: a>b a>c b>d c>d d>a",
        "a",
        [("a", "b@b c@c"), ("b c", "d"), ("d", "a"), ("a", "b@b c@c")],
    ),
    inner_loop_keeps_the_outer_branch=(
        "s o a b: s>o s>a a>b a>b b>a",
        "s",
        [("s", "o@o a@a"), ("a", "o@o b@a"), ("b", "o@o a@a")],
    ),
    popping_cuts_all_below=(
        "a b c d e: a>b a>c b>d b>e d>a",
        "a",
        [("a", "b@b c@c"), ("b", "c@c d@b/d e@b/e"), ("d", "a c@c e@b/e")],
    ),
    prefix_of_what_arrived=(
        "s a b c d x: s>a s>b a>c a>d c,d=all>x",
        "s",
        [("s", "a@a b@b"), ("a", "b@b c@a/c d@a/d"), ("c d", "b@b x@a")],
    ),
    prefix_across_depths=(
        "s a b c d x: s>a s>b a>c a>d c,b=all>x",
        "s",
        [("s", "a@a b@b"), ("a", "b@b c@a/c d@a/d"), ("b c", "d@a/d x")],
    ),
    end_is_no_branch=("a b: a>b a>END", "a", [("a", "b END")]),
    join_and_edge_split=("a b d: ^a ^b a,b=all>d a>b", "a@a b@b", [("a", "b@b b@a/b d<a")]),
    send_loop_does_not_grow=(
        "a w: w>a",
        "a",
        [("a*w,w", "w@w[0] w@w[1]"), ("w w", "a"), ("a*w", "w@w[0]"), ("w=a", "a")],
    ),
    a_member_sends_on=(
        "a w: w>END",
        "a",
        [("a*w", "w@w[0]"), ("w*w", "w@w[0]/w[0]"), ("w*w,w", "w@w[0]/w[0] w@w[0]/w[1]")],
    ),
    routes_split=("a b c d: b>d c>d", "a", [("a?b,c", "b@b c@c"), ("b c", "d")]),
)
def test_branch_paths(text: str, begins: str, steps: Steps) -> None:
    """Splits add a segment, merges take the longest common prefix, coming back to the splitter pops."""
    follow(text, begins, steps)


def test_map_nodes_fan_out_and_in() -> None:
    """A map node sends to its worker; the collector runs once behind the group, at once for no items."""
    graph = graph_of("m w c: w>c c>END")  # what add_map_node declares: an edge from worker to collector
    assert shown(graph, play(graph, "m*w,w,w", "w w")) == "w@w[2]"
    assert shown(graph, play(graph, "m*w,w,w", "w w", "w")) == "c"
    assert shown(graph, play(graph, "m=c")) == "c"


def test_the_order_in_which_members_ended_is_payload() -> None:
    """Markings of a group whose members ended in another order have one key: the same is due behind both."""
    graph = graph_of("a u v w x y: v>x w>y")
    one, other = play(graph, "a*u,v,w", "v", "w"), play(graph, "a*u,v,w", "w", "v")
    assert one.key() == other.key()
    assert one.key() != play(graph, "a*u,v,w", "v").key()
