"""Texts on which tokenizers that look alike differ: every tokenizer is compared on them, too."""

from __future__ import annotations

_WORD = "unbelievabilities"

HARD_TEXTS: tuple[str, ...] = (
    "", " ", "\t\n\r ", "a", "A", ".", "...", "a.b,c;d!e?f", "don't", "rock 'n' roll", "e-mail", "_x_",
    "UPPER lower MiXeD", "caf\u00e9 CAF\u00c9", "cafe\u0301 CAFE\u0301", "na\u00efve fa\u00e7ade r\u00e9sum\u00e9",
    "\u00c5ngstr\u00f6m \u212b", "stra\u00dfe STRASSE \u1e9e", "\u0130stanbul \u0131s\u0131", "\u01c4 \u01c5 \u01c6",
    "\ufb01 \ufb02 \ufb03", "\u00bd \u00b2 \u2460 \u2167", "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u039f\u0394\u039f\u03a3",
    "\u041c\u043e\u0441\u043a\u0432\u0430 \u0439 \u0451", "\u0419\u0438\u0306", "\u0645\u0631\u062d\u0628\u0627 \u0645\u064f\u062d\u064e\u0645\u064e\u0651\u062f",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u4f60\u597d\u4e16\u754c", "\u4e2d\u6587\u548cEnglish\u6df7\u5408", "\u3053\u3093\u306b\u3061\u306f \u30ab\u30bf\u30ab\u30ca \u304c \u304b\u3099",
    "\ud55c\uad6d\uc5b4 \u1112\u1161\u11ab", "\U00020000\U0002a6d6", "\uf900\ufa0e \U0002f800", "\uff21\uff22\uff23\uff11\uff12 \uff0c",
    "\U0001f600\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "#\ufe0f\u20e3",
    "a\u00a0b\u2003c\u3000d\u1680e", "a\u200bb\u200cc\u200dd\ufeffe", "a\u00adb", "a\x01b\x02c\x7fd\x80e", "a\ufffdb",
    "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", "\ue000\U000f0000", "\u0378\U0001fbff\U000e0041", "\u2018x\u2019 \u201cy\u201d \u2014 \u2026",
    "\u20ac5 \u00a310 $3.50 50%", "1,000,000.00", "2024-01-31T12:00:00Z", "https://example.org/a?b=c&d=%20#e",
    "user@example.org", "C:\\temp\\x", "def f(x): return x**2  # !", '{"a": [1, 2]}', "<b>x</b>&amp;", "^~`|+=<>$",
    "[CLS] a [SEP] b [PAD] [MASK] [UNK]", "x[SEP]y", "[SEP][SEP]", "[sep] [ SEP ] [SE P]", "[[MASK]]", "##ing ## #a",
    _WORD, _WORD * 5, "x" * 99, "x" * 100, "x" * 101, "a" * 300, "\u00e9" * 100, "\ud55c" * 40, "z\u0301" * 150,
    "the " * 700, ("word, " * 300) + "[SEP]", "a\u0300\u0301\u0302b", "\u0300\u0301", "\u1100\u1161\u11a8\u11ab",
    "q\u0307\u0323 q\u0323\u0307", "\u302e\u302f \U0001d15f\U0001d165", "\u0f73\u0f75\u0344", "\u1e9b\u0323", "\u037e\u0387\u2126",
)  # fmt: skip
"""Empty, spaces, cases, accents in both forms, scripts, marks, joiners, control and unassigned characters,
special tokens, long words and long texts."""
