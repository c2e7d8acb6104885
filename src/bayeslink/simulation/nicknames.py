"""Short and familiar forms of given names, written down from general knowledge."""

# Each line: a name, then what people called so also go by.
_FORMS = """
Abigail Abby Gail
Albert Al Bert
Alexander Alex Sandy
Alexis Lexi
Alfred Alf Fred
Amanda Mandy
Andrew Andy Drew
Angela Angie
Anthony Tony
Antonio Toni Tonino
Archibald Archie
Arthur Art
Barbara Barb Babs
Benjamin Ben
Bernard Bernie
Bradley Brad
Catherine Cathy Kate Katie
Charles Charlie Chuck
Charlotte Lottie Charlie
Christine Chris Tina
Christopher Chris Kit
Constance Connie
Cornelius Con
Daniel Dan Danny
David Dave Davy
Deborah Debbie Deb
Donald Don
Dorothy Dot Dolly
Douglas Doug
Edward Ed Ted Eddie
Eleanor Nell Ellie
Elizabeth Liz Beth Betty
Emily Em
Eugene Gene
Frances Fran Fanny
Francis Frank
Francisco Paco
Frederick Fred Freddie
Gabriel Gabe
Geraldine Gerry
Gerald Gerry
Giovanna Gianna
Giuseppe Pino Beppe
Gregory Greg
Guadalupe Lupe
Hannah Annie
Harold Harry Hal
Henry Harry Hank
Isabella Bella Izzy
Jacob Jake
Jacqueline Jackie
James Jim Jimmy
Jeffrey Jeff
Jennifer Jenny Jen
Jessica Jess
Jonathan Jon
José Pepe
Joseph Joe Joey
Josephine Josie Jo
Joshua Josh
Judith Judy
Katarzyna Kasia
Kathleen Kath Kathy
Kenneth Ken
Kimberly Kim
Lawrence Larry
Leonard Len
Lillian Lily
Madison Maddie
Manuel Manolo
Margaret Maggie Peggy Meg
Małgorzata Gosia
Martin Marty
Mary Molly Polly
Matilda Tilly
Matthew Matt
Megan Meg
Mercedes Merche
Michael Mike Mick
Mohammed Mo
Nathan Nate
Nicholas Nick
Nicola Nicky
Oliver Ollie
Olivia Liv
Pamela Pam
Patricia Pat Patty
Patrick Pat Paddy
Peter Pete
Philip Phil
Piotr Piotrek
Raymond Ray
Rebecca Becky
Reginald Reg
Richard Rick Dick
Robert Bob Rob Bobby
Ronald Ron
Salvatore Totò
Samantha Sam
Samuel Sam
Sandra Sandy
Santiago Santi
Sebastian Seb
Stanisław Staszek
Stephanie Steph
Stephen Steve
Steven Steve
Stuart Stu
Susan Sue Susie
Tadeusz Tadek
Teresa Tess
Theodore Theo Ted
Theresa Terry
Thomas Tom Tommy
Timothy Tim
Tomasz Tomek
Valentina Vale
Victoria Vicky Tori
Vincent Vince
Walter Walt
William Bill Will
Winifred Winnie
Zachary Zach
"""

NICKNAMES = {
    name: tuple(forms) for name, *forms in (line.split() for line in _FORMS.strip().splitlines())
}
