"""The word lists of the stand-ins: general English and the language of trade."""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


AMBIGUOUS_NOUNS = _set(
    """
    band bands battery camera cameras clock compartment dial display handle heels inputs
    lid lining network print range screen shape slots storage strap support system texture
    weight
    """
)
"""Attributes in "an OLED display", things in "a Realme LCD display"."""
ATTRIBUTE_NOUNS = _set(
    """
    acne ages android benefits bluetooth brand capacity categories category closure collar
    color colour compartments cost deals delivery density design diameter dirt dots
    drivers dust edition effects everyday feature features finish fit flavor flavors
    flavour function gps heel heels height ingredient label length look material
    microphones mics months movement neck neckline occasion occasions option options os
    pattern plug price ram resistance resolution returns scent season series service
    services setup shipping size sleeve sleeves sole spring straps stripes style summer
    taste theme toe toes tone vibe voltage waist warranty water watts wheels width winter
    years
    """
)
"""Nouns that describe a thing and are none: "a plain design"."""
FILLER = _set(
    """
    a above all also an and any are as at available be below between both brand but buy by
    called can category classified color come comes cost could crafted deal deals design
    designed do does each especially family feature features featuring find fit fits
    following for from get give good has have help i i'm ideal if im in include includes
    including interested is it item its just kind less like look looking made make
    matching may me model more must my named need of offer offered offering offers on one
    only option options or other over perfect perk perks peso pesos php please plus
    preferably price priced product products related search searching see sell selling
    sells service services set shop shops should show similar size sized so some
    specifically store stores style such suitable support supports sure than that the
    their them these they this to type types under use used uses want was we where which
    will with would you your
    """
)
"""Words of asking, not of things. Some are also names of attributes."""
SAME = {
    "grey": "gray",
    "colour": "color",
    "aluminium": "aluminum",
    "wooden": "wood",
    "golden": "gold",
    "silvery": "silver",
    "large": "l",
    "medium": "m",
    "small": "s",
    "kids": "kid",
    "children": "kid",
    "child": "kid",
    "childrens": "kid",
    "mens": "men",
    "man": "men",
    "male": "men",
    "gentlemen": "men",
    "womens": "women",
    "woman": "women",
    "ladies": "women",
    "lady": "women",
    "female": "women",
    "pieces": "pc",
    "piece": "pc",
    "pcs": "pc",
    "inches": "inch",
    "litre": "liter",
    "litres": "liter",
    "one": "1",
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "ten": "10",
    "years": "y",
    "year": "y",
    "yrs": "y",
    "months": "m",
    "jewellery": "jewelry",
    "adults": "adult",
    "automobile": "car",
    "cellphone": "phone",
    "smartphone": "phone",
    "mobile": "phone",
}
"""Spellings and words that mean the same, to one of them."""
