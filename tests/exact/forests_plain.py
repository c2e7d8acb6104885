"""The moves of `forest_moves` in plain Python; weights are of the whole forest, by definition."""

import math

from tests.exact.forests import prior


class PlainForest:
    """Parents of records; children in the order in which the kernel goes through them."""

    def __init__(self, candidates, given, clean, rho, log_w):
        n = len(candidates.start) - 1
        self.n, self.given, self.rho, self.log_w = n, given, rho, log_w
        self.clean = clean  # files
        self.near = [
            list(
                zip(
                    candidates.neighbour[candidates.start[i] : candidates.start[i + 1]].tolist(),
                    candidates.pattern[candidates.start[i] : candidates.start[i + 1]].tolist(),
                    strict=True,
                )
            )
            for i in range(n)
        ]
        self.parent, self.edge, self.children = [-1] * n, [None] * n, [[] for _ in range(n)]
        self.unlisted = []  # children of unlisted edges
        self.q = {}  # of the pairs of unlisted edges

    # --- the target ---

    def log_target(self):
        trees = {}
        for i in range(self.n):
            trees.setdefault(self.root(i), []).append(i)
        out = prior(tuple(trees.values()), self.given)
        for s in map(len, trees.values()):
            out -= math.log(s * (1 + (s - 1) * self.rho) ** (s - 2))
        for i in range(self.n):
            if self.parent[i] >= 0:
                out += self.log_w[self.edge[i][0]]
                if self.parent[self.parent[i]] >= 0:
                    out += math.log(self.rho) if self.rho else -math.inf
        return out

    def root(self, i):
        while self.parent[i] >= 0:
            i = self.parent[i]
        return i

    # --- what moves change ---

    def part(self, i):
        out = [i]
        for x in out:
            out += self.children[x]
        return out

    def unhang(self, i):
        self.children[self.parent[i]].remove(i)
        self.parent[i] = -1

    def hang(self, i, p, edge):
        self.parent[i], self.edge[i] = p, edge
        self.children[p].insert(0, i)
        if edge[1] is not None:
            self.unlisted[edge[1]] = i

    def make_root(self, x):
        way = [x]
        while self.parent[way[-1]] >= 0:
            way.append(self.parent[way[-1]])
        edges = [self.edge[i] for i in way]
        for child in way[:-1]:
            self.unhang(child)
        for child, p, edge in zip(way[1:], way, edges, strict=False):
            self.hang(child, p, edge)

    def state(self):
        return (
            list(self.parent), list(self.edge), [list(c) for c in self.children],
            list(self.unlisted),
        )  # fmt: skip

    def be(self, state):
        self.parent, self.edge, children, self.unlisted = (list(part) for part in state)
        self.children = [list(c) for c in children]

    def after(self, x, y=None, edge=None):
        """The target once the part of x has it for a root, or hangs by it on y."""
        before = self.state()
        self.make_root(x)
        if y is not None:
            self.hang(x, y, edge)
        out = self.log_target()
        self.be(before)
        return out

    # --- moves ---

    def move_part(self, i, uniform):
        if self.parent[i] >= 0 and self.edge[i][1] is not None:
            return
        if not self.near[i] and not self.children[i]:
            return
        part = self.part(i)
        if self.parent[i] >= 0:
            self.unhang(i)
        roots = [self.after(x) for x in part]
        options = [(x, y, g) for x in part for y, g in self.near[x] if y not in part]
        logs = [self.after(x, y, (g, None)) for x, y, g in options]
        top = max([*roots, *logs])
        weights = [sum(math.exp(r - top) for r in roots), *(math.exp(v - top) for v in logs)]
        pick = choose(weights, uniform)
        if pick == 0:
            self.make_root(part[choose([math.exp(r - top) for r in roots], uniform)])
            return
        x, y, g = options[pick - 1]
        self.make_root(x)
        self.hang(x, y, (g, None))

    def move_original(self, i, uniform):
        part = self.part(i)
        if self.parent[i] >= 0 or len(part) < 3 or len(self.children[i]) != len(part) - 1:
            return
        if any(self.edge[x][1] is not None for x in part[1:]):
            return
        logs = []
        for x in part:
            of_part = [self.log_w[g] for y, g in self.near[x] if y in part]
            logs.append(sum(of_part) if len(of_part) == len(part) - 1 else -math.inf)
        x = part[choose([math.exp(v - max(logs)) for v in logs], uniform)]
        if x == i:
            return
        for y in part[1:]:
            self.unhang(y)
        for y, g in self.near[x]:
            if y in part:
                self.hang(y, x, (g, None))

    def change_places(self, i, uniform):
        near, file = dict(self.near[i]), self.given.file
        if int(file[i]) not in self.clean or not near:
            return
        y, accept = list(near)[int(uniform() * len(near))], uniform()
        beside = [*self.children[y], *([self.parent[y]] if self.parent[y] >= 0 else [])]
        others = [j for j in beside if file[j] == file[i]]
        if self.root(y) == self.root(i) or not others:
            return
        j = others[0]
        hung = [[*self.children[x], *([self.parent[x]] if self.parent[x] >= 0 else [])]
                for x in (i, j)]  # fmt: skip
        for x, ends in zip((i, j), hung, strict=True):
            if len(ends) > 1:
                return
            for end in ends:
                if self.edge[x if self.parent[x] == end else end][1] is not None:
                    return
        near_j = dict(self.near[j])
        if hung[0] and hung[0][0] not in near_j:
            return
        before, now = self.state(), self.log_target()
        self.exchange(i, j, near, near_j, hung)
        chances = [1 / len(near), 1 / len(near if hung[0] else near_j)]
        if not accept < math.exp(self.log_target() - now) * chances[1] / chances[0]:
            self.be(before)

    def exchange(self, i, j, near_i, near_j, hung):
        """Each in the place of the other, beside the records that they hung on or that hung on."""
        is_root = self.parent[i] < 0, self.parent[j] < 0
        for x, ends in zip((i, j), hung, strict=True):
            for end in ends:
                self.unhang(x if self.parent[x] == end else end)
        for x, ends, near, root in (
            (i, hung[1], near_i, is_root[1]), (j, hung[0], near_j, is_root[0]),
        ):  # fmt: skip
            for end in ends:
                child, p = (end, x) if root else (x, end)
                self.hang(child, p, (near[end], None))

    def birth(self, a, b, g, q, uniform):
        accept = uniform()
        if self.root(a) == self.root(b):
            return
        before, now, n = self.state(), self.log_target(), len(self.unlisted)
        part = self.part(self.root(a))
        roots = [self.after(x) for x in part]
        chance = math.exp(now) / sum(map(math.exp, roots))  # that a death leaves this root
        self.make_root(a)
        self.unlisted.append(a)
        self.hang(a, b, (g, n))
        ratio = math.exp(self.log_target() - now) * chance / ((n + 1) * q / 2)
        self.q[g, a, b] = self.q[g, b, a] = q
        if not accept < ratio:
            self.be(before)

    def death(self, uniform):
        n = len(self.unlisted)
        k, accept = int(uniform() * n), uniform()
        x = self.unlisted[k]
        before, now, y, g = self.state(), self.log_target(), self.parent[x], self.edge[x][0]
        part = self.part(x)
        self.unhang(x)
        roots = [self.after(r) for r in part]
        ratio = sum(map(math.exp, roots)) / math.exp(now) * n * self.q[g, x, y] / 2
        if not accept < ratio:
            self.be(before)
            self.children[y].remove(x)  # hung on it anew
            self.children[y].insert(0, x)
            return
        last = self.unlisted[-1]
        self.unlisted[k] = last
        self.edge[last] = (self.edge[last][0], k)
        self.unlisted.pop()
        self.make_root(part[choose([math.exp(r - max(roots)) for r in roots], uniform)])


def choose(weights, uniform):
    threshold, so_far, last = uniform() * sum(weights), 0.0, 0
    for k, weight in enumerate(weights):
        if weight > 0:
            last, so_far = k, so_far + weight
            if threshold < so_far:
                return k
    return last


def plain_sweep(forest, far, moves, births):
    """One sweep, from the uniform numbers of the two streams."""
    for _ in range(forest.n):
        i = int(moves() * forest.n)
        forest.move_part(i, moves)
        forest.move_original(i, moves)
        forest.change_places(i, moves)
    for p in range(far.a_sweep):
        if births() < 0.5:
            a, b = (int(x) for x in far.pairs[p])
            if births() < 0.5:
                a, b = b, a
            if far.q[p] < math.inf:
                forest.birth(a, b, int(far.pattern[p]), far.q[p], births)
        elif forest.unlisted:
            forest.death(births)
