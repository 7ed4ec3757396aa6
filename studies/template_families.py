"""Families of texts that share a frame and say other things, for `look_alikes.py`; the halves share no frame."""

from __future__ import annotations

import random
from collections.abc import Mapping

#: What is in the places of a frame: names, things, and what is done.
PEOPLE = """
Aldana Brisco Calloway Dragić Eberhardt Faulkner Grigoryan Hartono Ilves Jankowski Kessler Lindqvist Moreau Nakagawa
Okafor Petrova Quispe Rahmani Sandoval Takács Ursini Vandermeer Whitlock Xiang Yamamoto Zielinski Abernathy Baptiste
Castellano Duquesne Eriksen Fitzgerald Gallardo Hofstetter Ibrahim Jovanović
""".split()
PLACES = """
Antwerp Bergen Cardiff Dresden Esbjerg Fresno Ghent Halifax Izmir Jakarta Kaunas Lagos Malmö Nantes Oulu Porto Quito
Riga Seville Tampere Utrecht Valencia Wuppertal Xalapa Yerevan Zagreb Bilbao Cork Debrecen Essen Florence Graz Hull
""".split()
THINGS = """
anvil bellows canoe dulcimer easel flute gondola harrow inkwell jigsaw kayak ladle mortar napkin oar pulley quilt rake
sextant trowel ukulele vise winch xylophone yoke zither abacus bobbin chisel drill engine furnace gasket hinge ingot
joist kiln lathe mallet nozzle oven piston rivet spindle turbine valve wrench barometer centrifuge dynamo
""".split()
FOODS = """
artichoke barley chickpea dumpling endive fennel gnocchi halibut jackfruit kale leek mussel noodle okra parsnip quinoa
rhubarb salmon tofu turnip venison walnut yam zucchini aubergine buckwheat cauliflower duck eel flounder goose
""".split()
KINDS = """
acoustic brittle coastal dormant elastic fragile granular humid inert jagged kinetic linear magnetic nocturnal opaque
porous quartz rigid saline thermal urban volatile woven arid buoyant caustic dense
""".split()
DOES = """
absorbs bends compresses deflects emits filters grinds heats isolates joins lifts measures polishes reflects stores
twists vibrates weighs amplifies balances carves dissolves
""".split()

#: Of each family, frames by half: `develop`, `report`. Several frames of a half are drawn from in turn.
FAMILIES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "agency news, same ending": (
        (
            "{P} {does} a {kind} {thing} for the harbour of {Place}, the council was told on day {n} of the hearing. "
            "Officials of {Q} had asked for {m} more {thing2}s after the {kind2} {thing3} failed near {Place2}. The "
            "cost rose to {k}.{j} million.\n\n(Reporting by Dana Whitfield in London; additional reporting by Marco "
            "Ilardi and Susan Hale; editing by Peter Grant and Lise Maes. Our standards: the principles of trust. "
            "Acquire licensing rights, opens new tab)",
            "{P} of {Place} {does} the {thing} with {n} votes.\n\nThis news item was first put out in the "
            "language of the country. It has been translated with the help of software and read by an editor. "
            "The agency takes no responsibility for what others make of it. Reproduction in whole or in part is "
            "permitted only where the source is named in full, with the date of issue, and where the text is not "
            "altered. For questions on rights write to the desk for sales in the main office.",
        ),
        (
            "{Place} - The maker of the {kind} {thing}, {P}, closed its plant of {n} workers. It had sold {m} "
            "{thing2}s to {Q} before the {thing3} {does} no more. Trade unions in {Place2} called it a {kind2} "
            "decision.\n\nThis report was prepared with material from the wire services of our partners abroad and "
            "was checked by the night desk before it went out. Corrections are sent to subscribers within the hour "
            "and kept in the archive for ten years. Not for broadcast before the morning.",
            "The {food} harvest of {Place} fell to {n} tons, said {P}.\n\nAll figures are given in local time "
            "and in the currency of the country unless it is said otherwise. Numbers have been rounded and may "
            "not add up. Our reporters keep to a code that can be read on the site; complaints are heard by an "
            "independent reader of the paper who answers in writing. You receive this bulletin since you asked "
            "for it, and you can end it at any time with one line to the sender.",
        ),
    ),
    "agency news, same beginning": (
        (
            "The following is a summary of the main statements made at the weekly press conference of the ministry "
            "in the capital, as provided by the office of the spokesman to correspondents who were present. {P} said "
            "that {n} {thing}s had reached {Place} and that {Q} {does} the {kind} {thing2}. Asked about {Place2}, she "
            "called the {kind2} {thing3} a matter for the court.",
            "You are reading the free version of the morning letter, which goes out each working day before "
            "seven to readers in more than forty countries. If it was passed on to you by a friend, think of "
            "signing up on your own; it costs nothing and takes less than a minute. Here is what you need to "
            "know to start the day. {P} {does} the {thing} of {Place}.",
        ),
        (
            "Good evening, and welcome to the markets in brief, our look at what moved prices today and at what "
            "traders will be watching when the bell rings tomorrow morning. {P} Holdings gained {m}.{j} percent on "
            "talk of a {kind} {thing} deal with {Q}. In {Place} the price of {food} fell to {n}, a low not seen "
            "since the {thing2} strike; {Place2} stood still.",
            "This is a rush transcript provided without commercial interruption. It may not be in its final form "
            "and may be updated. The record of the programme is the audio as it was broadcast, and names may "
            "have been spelled by ear. Host: We turn now to our correspondent for the region, who has been on "
            "the ground since the weekend. {P}: The {kind} {thing} in {Place} {does} {n} {thing2}s.",
        ),
    ),
    "legal clauses": (
        (
            "This Agreement shall be governed by and construed in accordance with the laws of {Place}, and the "
            "courts of {Place2} shall have exclusive jurisdiction over any dispute arising out of or in connection "
            "with the supply of the {thing}s. Notices to {P} shall be sent by registered mail within {n} days.",
            "The Tenant shall keep the {thing} and the {thing2} in good repair and shall not sublet the premises in "
            "{Place} without the prior written consent of {P}. The deposit of {n} shall be returned within {m} days "
            "after the end of the term, less the cost of any damage to the {thing3}.",
            "If any provision of this Agreement is held by a court of {Place} to be invalid or unenforceable, "
            "the remaining provisions shall continue in full force and effect, and the parties shall replace the "
            "invalid provision by a valid one which comes as close as possible to the economic purpose of the "
            "invalid provision. This clause survives the end of the Agreement for {m} years.",
        ),
        (
            "In the event that {P} fails to deliver the {kind} {thing} by the date set out in Schedule {m}, the "
            "Purchaser may terminate this contract by giving not less than {n} days' notice in writing, without "
            "prejudice to any other right or remedy available to {Q} at law or in equity.",
            "Neither party shall be liable for any failure to perform its obligations where such failure results "
            "from flood in {Place}, from the loss of a {thing}, or from any act of {Q} that is beyond its reasonable "
            "control, provided that it informs {P} within {m} days.",
            "The Supplier represents and warrants to {P} that it has full power and authority to enter into this "
            "contract, that the execution of it has been duly authorised by all necessary corporate action, and "
            "that it does not conflict with or result in a breach of any law, order, or agreement by which the "
            "Supplier is bound or to which its assets in {Place} are subject.",
        ),
    ),
    "licence headers on code": (
        (
            "# Permission to use, copy, modify and distribute this software for any purpose with or without fee is\n"
            "# hereby granted, provided that the above copyright notice and this permission notice appear in all\n"
            "# copies. The software is provided as is and the author disclaims all warranties with regard to this\n"
            "# software including all implied warranties of merchantability and fitness.\n\n"
            "def {thing}_{does}({food}, {kind}={n}):\n    {thing2} = [{food}.{kind2}(at) for at in range({m})]\n"
            "    if not {thing2}:\n        raise {P}Error('{thing3}')\n    return {kind}_{Place}({thing2})\n",
            "# Redistribution and use in source and binary forms, with or without modification, are permitted "
            "provided that\n# the following conditions are met: redistributions of source code must retain the "
            "above copyright notice, this\n# list of conditions and the following disclaimer; redistributions in "
            "binary form must reproduce the above notice\n# in the documentation and other materials provided "
            "with the distribution. Neither the name of the holder nor the\n# names of its contributors may be "
            "used to endorse or promote products derived from this software without specific\n# prior written "
            "permission.\nimport {thing}\n\nclass {P}{Place}({thing}.{food}):\n    {kind} = {n}\n",
        ),
        (
            "/*\n * This file is part of a work that is free to share: you may pass it on and change it under the\n"
            " * terms of version four of the common licence, or at your option any later version. It is given out\n"
            " * in the hope that it is of use but without any promise, not even that it suits what you want it for.\n"
            " * You should have got a copy of the licence along with it; if not, ask the address below.\n */\n"
            "struct {thing} {{ int {kind}; double {does}[{n}]; }};\n"
            "static void {P}_{thing2}(struct {thing} *{food}) {{\n    {food}->{kind} = {m};\n"
            "    {thing3}_{kind2}({food}->{does}, {Place});\n}}\n",
            "// Use of this source is governed by the terms found in the file at the root of the tree. By "
            "contributing to it you\n// agree that your work may be given to others under the same terms, for "
            "any use, commercial or not, and that you\n// have the right to give it away. Nothing in this notice "
            "grants the use of the names or marks of the project, and\n// nobody who took part in it can be held "
            "to account for damages of any sort that may come from its use or from the\n// lack of it, even if "
            "told before that these could come.\npackage {thing}\n\nfunc {P}{does}({food} int) *{Place} "
            "{{\n\treturn {kind}.{thing2}({n})\n}}\n",
        ),
    ),
    "multiple choice, same options": (
        (
            "According to the passage, what does the {kind} {thing} of {P} show about {Place}? A. The statement is "
            "true and the reason explains it. B. The statement is true but the reason does not explain it. C. The "
            "statement is true and the reason is false. D. Both the statement and the reason are false.",
            "In a {kind} {thing}, what {does} the {thing2}? (a) It increases. (b) It decreases. (c) It stays the same. "
            "(d) It first increases and then decreases. (e) It cannot be told from what is given here.",
            "What {does} a {thing}? A. All of the answers given below are right. B. None of the answers given "
            "below is right. C. Only the second and the fourth of the answers below are right. D. The first, the "
            "second and the third of the answers below are right, but the fourth is not. E. It depends on the "
            "temperature.",
        ),
        (
            "Statement 1: every {kind} {thing} {does}. Statement 2: the {thing2} of {P} is {kind2}. Choose from these: "
            "(1) True, True (2) False, False (3) True, False (4) False, True (5) There is not enough information to "
            "decide on either of the statements.",
            "Which {thing} would a worker in {Place} need to keep {n} {food}s {kind}? A. Only the first one. B. Only "
            "the second one. C. Both of them together. D. Neither the first nor the second. E. The question has no "
            "answer that holds in each case.",
            "Is {P} right about the {kind} {thing}? Choose the best answer: (A) Yes, since the premise entails "
            "it. (B) No, since the premise rules it out. (C) It cannot be said, since the premise neither "
            "entails it nor rules it out. (D) The premise is not a statement, so that the question does not "
            "arise at all.",
        ),
    ),
    "definitions": (
        (
            "A {thing} is a {kind} tool that {does} {food}s. The word comes from the dialect of {Place}, where it "
            "stood for a {thing2}.",
            "{P}'s {thing}: in mechanics, the name given to any {kind} {thing2} which {does} another one at a "
            "constant rate; first described by {Q} in 1{n}.",
            "{P} is the surname of several people; the name is most frequent in the north of {Place}. For other "
            "uses of the word see the page with the same title and the word in brackets. This list may not be "
            "complete; you can help by adding to it.",
        ),
        (
            "{Place} ({kind} {thing}): noun. 1. A person who {does} {thing2}s. 2. By extension, anything {kind2} and "
            "of little use. Compare {P}.",
            "The {P} effect describes how a {kind} {thing} {does} when it is brought near a {thing2}; it is named "
            "after the physicist {P}, who saw it in {Place} in 1{n}.",
            "A {kind} {thing} is, in the narrow sense of the word, one whose parts can be put together again "
            "without loss after it has been taken to pieces. In a wider sense the term is used of everything "
            "that {does} a {thing2}.",
        ),
    ),
    "abstracts": (
        (
            "In this paper we present a new method for the analysis of {kind} {thing}s. The results show that the "
            "proposed method performs better than existing ones on {thing2}s from {Place}, with an error of {m} "
            "percent. We discuss the limits of the {kind2} approach of {P} and directions for future work.",
            "An experimental investigation of the {kind} {thing} was carried out at speeds of {n} to 9{n}. The "
            "effects of {thing2} angle and of {kind2} flow on the pressure distribution were determined. Good "
            "agreement was found between theory after {P} and the measured values for the {thing3}.",
            "We prove the existence and uniqueness of solutions to a class of {kind} equations with {thing} "
            "boundary conditions under mild assumptions on the data. The proof rests on a fixed point theorem "
            "and on estimates due to {P}. Numerical examples illustrate the results.",
        ),
        (
            "Background: the role of {food} in {kind} disease is not well understood. Methods: we enrolled {n} "
            "patients in {Place} who were randomly assigned to {food2} or placebo. Results: the primary outcome "
            "occurred in {m} percent of the {thing} group. Conclusions: further studies of {kind2} {thing2}s are "
            "needed.",
            "A theoretical study is made of the {kind} boundary layer on a {thing} with {n} points of {thing2} "
            "injection. The governing equations are solved numerically by the procedure of {P}, and the results are "
            "compared with those for a {kind2} {thing3}.",
            "Large language models have achieved remarkable success on a wide range of tasks, yet their ability "
            "to reason about {thing}s remains poorly understood. We introduce a benchmark of {n} examples that "
            "covers {kind} and {kind2} settings. Extensive experiments show that even the strongest models fall "
            "far behind humans. We release the data and code to foster future research.",
        ),
    ),
    "weather and sports": (
        (
            "Weather for {Place} on day {m}: {kind} in the morning with highs of {k} degrees and winds from the "
            "{thing} hills at {n} miles per hour. Chance of rain {j} percent. Sunset at {m}.{k} in the evening.",
            "{Place} {m}, {Place2} {k}. {P} scored twice in the first half before {Q} pulled one back after the "
            "break. The home side, who had {n} shots on goal, stay in place {j} of the table with one game to play.",
            "Tonight: mostly clear, with a low around {m}. Wind from the west at {j} to {k} miles per hour. "
            "Tomorrow: sunny, with a high near {n}. Chance of rain is {j} percent. The next update of this "
            "forecast will be issued by the weather service at six in the morning.",
        ),
        (
            "Marine forecast for the waters off {Place}: {kind} seas of {m} to {k} feet, wind force {j}, visibility "
            "{n} yards in {kind2} patches. Small craft should stay in port until the warning has been lifted.",
            "Stage {m} went to {P} of team {thing}, who crossed the line in {Place} after {n} kilometres, {k} seconds "
            "before {Q}. The yellow jersey did not change hands, and the field rests tomorrow in {Place2}.",
            "Final score after {m} innings: {Place} {k}, {Place2} {j}. Winning pitcher: {P}. Losing pitcher: "
            "{Q}. Time of game two hours and {m} minutes. Attendance {n}. The series continues on the next day "
            "at the same place with the first pitch a little after seven.",
        ),
    ),
    "product pages": (
        (
            "{P} {thing} {n}, {kind} finish. Item weight {k} pounds. Free delivery on orders over fifty euros and "
            "free returns within thirty days of receipt. In stock. Only {m} left. Customers who bought this item "
            "also bought a {thing2} and a {kind2} {thing3}. Sold by {Q} and shipped from our own warehouse.",
            "Buy {kind} {thing}s online at low prices. Free shipping on all qualifying offers. Read customer "
            "reviews and common questions and answers for part number {n}. We work hard to protect your security "
            "and privacy. Our payment system encrypts your information during transmission. We do not share your "
            "card details with sellers, and we do not sell your information to others.",
        ),
        (
            "Our {kind} {thing} for the garden, model {P}-{n}, made of {food} wood. Size in centimetres: {m} by {k}. "
            "Please note that colours on your screen may differ from the real ones. Assembly needed, tools are not "
            "included. Two years of warranty. Ask us about the matching {thing2} from the {Place} range.",
            "Rated {j} out of five by {n} guests. The {P} in {Place} has {m} rooms. Each room comes with a flat "
            "screen television, a private bathroom and free internet. Breakfast is served each morning in the "
            "dining room. The front desk is open day and night. Pets are not allowed. Special conditions and "
            "extra charges may apply to more than one room.",
        ),
    ),
    "forum posts and recipes": (
        (
            "Welcome to the forum! Please read the rules before you post and use the search, your question may have "
            "been answered. {P} wrote: my {kind} {thing} {does} since I put in the {thing2}, and in {Place} nobody "
            "sells a {thing3}. Any ideas? -- Posted from my phone. Reply Quote Report Like Share Ignore user",
            "Heat the oil in a large pan over medium heat. Add the {food} and cook for {m} minutes until golden. Stir "
            "in the {food2} and {n} grams of {food3}, season with salt and pepper, cover, and simmer for {k} minutes. "
            "Serve hot with {food4}.",
            "Join Date: the spring of last year. Posts: {n}. Thanks given: {m}. You may not post new threads. "
            "You may not post replies. You may not post attachments. You may not edit your posts. Smilies are "
            "on. Code in brackets is off. {P}: has anybody from {Place} tried a {thing} with {food}?",
        ),
        (
            "Hi all, first time poster, long time reader. I have a {kind} {thing} from {P} that I bought in {Place} "
            "for {n}. Is it worth keeping next to my {thing2}? Thanks in advance for your help, and sorry for my "
            "English. Edit: solved, thank you all. Moderators may close this thread and mark it as answered.",
            "Preheat the oven to {n} degrees and line a tray with paper. Mix the {food} with {m} spoons of ground "
            "{food2}, roll into balls the size of a walnut, and dip them in {food3}. Bake for {k} minutes or until "
            "a knife comes out clean. Leave to cool on a rack, then dust with {food4}.",
            "Thank you for your question. I am an independent advisor and a user like you, and I will be happy "
            "to help you today. Please back up your files before you do what follows. Open the settings, choose "
            "{thing}, and set {kind} to {n}. If this does not solve it, write back below. Note: this is not an "
            "official page of the maker, and the advice comes without a promise of any sort.",
        ),
    ),
}  # fmt: skip


def fill(frame: str, draw: random.Random) -> str:
    """A text of a frame with facts of its own."""
    people, places = draw.sample(PEOPLE, 2), draw.sample(PLACES, 2)
    things, foods, kinds = draw.sample(THINGS, 3), draw.sample(FOODS, 4), draw.sample(KINDS, 2)
    names = {"P": people[0], "Q": people[1], "Place": places[0], "Place2": places[1]}
    names |= {f"thing{at or ''}": one for at, one in zip((0, 2, 3), things, strict=True)}
    names |= {f"food{at or ''}": one for at, one in zip((0, 2, 3, 4), foods, strict=True)}
    names |= {"kind": kinds[0], "kind2": kinds[1], "does": draw.choice(DOES)}
    numbers = {
        "n": draw.randint(100, 990),
        "m": draw.randint(2, 60),
        "k": draw.randint(10, 59),
        "j": draw.randint(1, 9),
    }
    return frame.format(**names, **numbers)
