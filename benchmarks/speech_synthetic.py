"""Measure how well sentences of synthetic speech are found where the text lacks sentences or has others.

python benchmarks/speech_synthetic.py                   # trains a small model first; two or three minutes on one core
python benchmarks/speech_synthetic.py --items 2 --steps 40

espeak-ng (https://github.com/espeak-ng/espeak-ng, a program to install beside this library) speaks random sentences and
names their phonemes. No package ships a small CTC model, so one is trained here, with `CTCLoss`, on sentences in five
voices: three convolutions over log mel energies, 40 frames per second. It is tested on other sentences in another
voice, with white noise, 12 sentences per recording. From the text of a recording, two sentences are removed, or two
that nobody speaks are inserted. `speech.align` treats each sentence as one word, which is skipped as a whole.

A sentence is timed if both ends are within 0.2 s. `skip`, `garbage` and that limit were chosen on seed 10000.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import wave
from dataclasses import dataclass

import numpy as np
import torch
from speech_words import Counts, Found, Recording, Text, result
from torch import nn

from dropdtw import speech
from dropdtw.problem.inputs import Array
from dropdtw.torch import CTCLoss

RATE, HOP, WINDOW, BANDS = 22050, 551, 1024, 40
"""Samples per second, per frame and per window, and mel bands."""

FPS = RATE / HOP

VOICES, UNHEARD = ("en-us", "en-us+m3", "en-us+f2", "en-us+m7", "en-us+f5"), "en-us+f3"
"""Voices of the training, and that of the test."""

PARTS = [
    part.split("|")
    for part in (
        "the|a|this|that|every|our",
        "young|old|quiet|hungry|green|clever|small|famous|tired|strange",
        "farmer|teacher|river|dog|machine|doctor|garden|captain|window|student",
        "sees|follows|paints|forgets|carries|breaks|watches|remembers|cleans|finds",
        "seven|many|some|no|twenty|their",
        "yellow|broken|wooden|heavy|secret|useful|cold|round|empty|golden",
        "boats|letters|apples|bridges|horses|clocks|songs|shoes|mountains|pictures",
        "in the morning|after lunch|near the church|without a word|under water|for a friend|at school|on Sunday",
    )
]
"""Parts of a sentence, each with its choices."""

SKIP, GARBAGE = 30.0, 2.0
"""Costs of a skipped sentence and of a frame of speech that is not in the text."""

NEAR = 8
"""Frames within which both ends of a timed sentence lie."""


def sentence(rng: np.random.Generator) -> str:
    return " ".join(str(rng.choice(part)) for part in PARTS)


def espeak(*arguments: str) -> bytes:
    return subprocess.run(["espeak-ng", *arguments], capture_output=True, check=True).stdout


def phonemes(text: str) -> list[str]:
    """The phonemes of a sentence, without stress and length."""
    said = espeak("-q", "-v", "en-us", "--ipa=1", text).decode().translate(str.maketrans(" \n", "__", "ˈˌː"))
    return [phoneme for phoneme in said.split("_") if phoneme]


def spoken(text: str, voice: str, speed: int) -> Array:
    """The samples of a sentence, without the silence around it."""
    with wave.open(io.BytesIO(espeak("-v", voice, "-s", str(speed), "--stdout", text))) as file:
        samples = np.frombuffer(file.readframes(1 << 30), np.int16) / 32768
    loud = np.flatnonzero(np.abs(samples) > 0.01)
    return samples[loud[0] : loud[-1] + 1]


def features(samples: Array) -> torch.Tensor:
    """Standardized log mel energies (T, BANDS)."""
    padded = np.pad(samples, (WINDOW // 2, WINDOW))
    frames = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][: len(samples) // HOP + 1]
    power = np.abs(np.fft.rfft(frames * np.hanning(WINDOW), axis=1)) ** 2
    mel = np.linspace(0, 2595 * np.log10(1 + 7000 / 700), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1) / (RATE / WINDOW)
    at = np.arange(power.shape[1])[:, None]
    rise, fall = (at - edges[:-2]) / np.diff(edges)[:-1], (edges[2:] - at) / np.diff(edges)[1:]
    energies = np.log(power @ np.clip(np.minimum(rise, fall), 0, None) + 1e-3)
    return torch.from_numpy((energies - energies.mean(0)) / energies.std(0)).float()


def noisy(rng: np.random.Generator, samples: Array) -> Array:
    return samples + 0.005 * rng.normal(size=len(samples))


class Model(nn.Sequential):
    """Scores (B, T, V) of features (B, T, BANDS)."""

    def __init__(self, vocabulary: int, width: int = 128) -> None:
        layers: list[nn.Module] = []
        for size, inputs in ((5, BANDS), (5, width), (5, width)):
            layers += [nn.Conv1d(inputs, width, size, padding=size // 2), nn.ReLU()]
        super().__init__(*layers, nn.Conv1d(width, vocabulary, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the scores."""
        return super().forward(x.mT).mT


@dataclass
class Listener:
    """A trained model and its vocabulary; token 0 is the blank."""

    model: Model
    tokens: dict[str, int]

    def text(self, sentence: str) -> list[int]:
        """The tokens of a sentence; phonemes that the training never had are left out."""
        return [self.tokens[phoneme] for phoneme in phonemes(sentence) if phoneme in self.tokens]

    @torch.no_grad()
    def log_probs(self, samples: Array) -> Array:
        """The log-probabilities (T, V) of a recording."""
        return self.model(features(samples)[None])[0].double().log_softmax(-1).numpy()


def trained(seed: int, steps: int, sentences: int = 200) -> Listener:
    """A model trained on random sentences, each in one of the voices."""
    rng = np.random.default_rng([seed, 0])
    torch.manual_seed(seed)
    texts = [sentence(rng) for _ in range(sentences)]
    said = [phonemes(text) for text in texts]
    tokens = {phoneme: k for k, phoneme in enumerate(sorted({p for s in said for p in s}), 1)}
    listener = Listener(Model(len(tokens) + 1), tokens)
    heard = []
    for text in texts:
        samples = spoken(text, str(rng.choice(VOICES)), int(rng.integers(140, 191)))
        around = [np.zeros(int(rng.integers(0, RATE // 2))) for _ in range(2)]
        heard.append(features(noisy(rng, np.concatenate([around[0], samples, around[1]]))))
    loss, optimizer = CTCLoss(logits=True), torch.optim.Adam(listener.model.parameters(), lr=2e-3)
    for step in range(steps):
        chosen = rng.choice(sentences, 8, replace=False)
        x = nn.utils.rnn.pad_sequence([heard[k] for k in chosen], batch_first=True)
        targets = [torch.tensor([tokens[p] for p in said[k]]) for k in chosen]
        scores = listener.model(x).transpose(0, 1)
        lengths = [torch.tensor([len(each) for each in some]) for some in ([heard[k] for k in chosen], targets)]
        value = loss(scores, torch.cat(targets), *lengths)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step}: CTC loss per phoneme {value.item():.3f}", flush=True)
    return listener


def recording(rng: np.random.Generator, listener: Listener, sentences: int) -> Recording:
    """Random sentences one after the other, with pauses of 0.2 to 1 s."""
    parts, spans, texts = [np.zeros(RATE // 2)], [], []
    speed = int(rng.integers(150, 181))
    for _ in range(sentences):
        text = sentence(rng)
        start = sum(map(len, parts))
        parts.append(spoken(text, UNHEARD, speed))
        spans.append((round(start / HOP), round((start + len(parts[-1])) / HOP)))
        parts.append(np.zeros(int(rng.integers(RATE // 5, RATE))))
        texts.append(listener.text(text))
    return Recording(listener.log_probs(noisy(rng, np.concatenate(parts))), texts, spans)


def damaged(rng: np.random.Generator, listener: Listener, truth: Recording, kind: str) -> Text:
    """Two sentences removed, or two others inserted."""
    which = list(range(len(truth.words)))
    if kind == "removed":
        gone = set(rng.choice(len(which), 2, replace=False).tolist())
        which = [w for w in which if w not in gone]
    else:
        for place in sorted(rng.choice(len(which) + 1, 2, replace=False).tolist(), reverse=True):
            which.insert(place, -1)
    return Text([truth.words[w] if w >= 0 else listener.text(sentence(rng)) for w in which], which)


def aligned(log_probs: Array, words: list[list[int]], open_text: bool) -> Found:
    how = {"skip": SKIP, "garbage": GARBAGE, "within_words": False} if open_text else {}
    return result(speech.align(log_probs, words, **how), len(words), len(log_probs))


def measured(listener: Listener, items: int, sentences: int, kind: str, seed: int) -> dict[str, Counts]:
    """Counts of both aligners over the same recordings and texts."""
    found = {"speech.align": Counts(), "plain CTC": Counts()}
    for item in range(items):
        rng = np.random.default_rng([seed, 1, item])
        truth = recording(rng, listener, sentences)
        text = damaged(rng, listener, truth, kind)
        for name, counts in found.items():
            counts.add(truth, text, aligned(truth.log_probs, text.words, name != "plain CTC"), kind, NEAR)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--sentences", type=int, default=12)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=20000)
    said = parser.parse_args()
    if shutil.which("espeak-ng") is None:
        raise SystemExit("espeak-ng is not installed; install it, for example with apt install espeak-ng")
    listener = trained(0, said.steps)
    print("| text | aligner | sentences timed within 0.2 s | F1 of missing or wrong sentences |")
    print("|---|---|--:|--:|")
    for kind in ("removed", "inserted"):
        for name, c in measured(listener, said.items, said.sentences, kind, said.seed).items():
            print(f"| 2 of {said.sentences} {kind} | {name} | {c.timed / c.spoken:.1%} | {c.f1:.3f} |", flush=True)


if __name__ == "__main__":
    main()
